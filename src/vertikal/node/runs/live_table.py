"""The live table of a run: one line per party, drawn on standard error while the parties work."""

from __future__ import annotations

import threading
import time

from rich.console import Console
from rich.live import Live
from rich.table import Table

from vertikal.node.runs.progress import Report
from vertikal.reporting import bytes_text, seconds_text


class LiveTable:
    """A context; `tell` may be called from any thread."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._reports = {name: Report(name) for name in names}
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

    def tell(self, report: Report) -> None:
        with self._lock:
            if report.party in self._reports:
                self._reports[report.party] = report

    def table(self) -> Table:
        """The table as it stands."""
        table = Table(title=f"{seconds_text(time.monotonic() - self._began)}", title_justify="left")
        with self._lock:
            reports = list(self._reports.values())
        for column in ("party", "stage", "done", "how it goes", "in", "out", "waits for", "left"):
            right = column in ("done", "in", "out", "left")
            table.add_column(
                column,
                justify="right" if right else "left",
                # A narrow terminal cuts the words, not the names.
                min_width=max(map(len, self._reports)) if column == "party" else None,
            )
        for report in reports:
            left = report.time_left()
            table.add_row(
                report.party,
                (report.ended[:60] or report.stage),
                f"{report.done:,}" + (f" / {report.total:,}" if report.total else ""),
                report.note[:56],
                bytes_text(report.bytes_in),
                bytes_text(report.bytes_out),
                report.waits_for[:48],
                "" if left is None else seconds_text(left),
            )
        return table
