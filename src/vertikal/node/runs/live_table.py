"""The live table of a run: one line per party, drawn on standard error while the parties work."""

from __future__ import annotations

import threading
import time

from rich.console import Console
from rich.live import Live
from rich.table import Table

from vertikal.node.runs.progress import Progress
from vertikal.reporting.units import bytes_text, seconds_text


class LiveTable:
    """A context in which the table is drawn; `tell` may be called from any thread."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._progress = {name: Progress(name) for name in names}
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._live = Live(
            get_renderable=self.table,
            console=Console(stderr=True, highlight=False),
            refresh_per_second=4,
        )

    def __enter__(self) -> LiveTable:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def tell(self, progress: Progress) -> None:
        with self._lock:
            if progress.party in self._progress:
                self._progress[progress.party] = progress

    def results(self) -> list[str]:
        """List how good the model is, as far as a party has told it."""
        with self._lock:
            return [one.result for one in self._progress.values() if one.result]

    def table(self) -> Table:
        """Draw the table as it stands."""
        table = Table(title=f"{seconds_text(time.monotonic() - self._began)}", title_justify="left")
        with self._lock:
            lines = list(self._progress.values())
        for column in ("party", "stage", "done", "how it goes", "in", "out", "waits for", "left"):
            right = column in ("done", "in", "out", "left")
            table.add_column(
                column,
                justify="right" if right else "left",
                # A narrow terminal cuts the words, not the names.
                min_width=max(map(len, self._progress)) if column == "party" else None,
            )
        for progress in lines:
            left = progress.time_left()
            table.add_row(
                progress.party,
                (progress.ended[:60] or progress.stage),
                f"{progress.done:,}" + (f" / {progress.total:,}" if progress.total else ""),
                progress.note[:56],
                bytes_text(progress.bytes_in),
                bytes_text(progress.bytes_out),
                progress.waits_for[:48],
                "" if left is None else seconds_text(left),
            )
        return table
