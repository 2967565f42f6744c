"""Progress in the terminal: one bar per party and stage, drawn only where somebody asked for it."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from vertikal.errors import InputError
from vertikal.party.clock import Observer, Silent

_SHOWN = ("phases", "solve", "predict")


class ProgressBars:
    """A context that gives the observer ``verbose`` stands for: none, bars, or the caller's own."""

    def __init__(self, verbose: object) -> None:
        self._bars: _Bars | None = None
        self._observer: Observer
        if isinstance(verbose, bool | int):
            self._bars = _Bars() if verbose else None
            self._observer = self._bars or Silent()
        elif all(hasattr(verbose, name) for name in ("begin", "advance", "end")):
            self._observer = verbose  # type: ignore[assignment]
        else:
            raise InputError.of("verbose", "a number, True, False, or an observer", verbose)

    def __enter__(self) -> Observer:
        if self._bars:
            self._bars.progress.start()
        return self._observer

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars:
            self._bars.progress.stop()


class _Bars:
    """Draws on standard error, so that results on standard output stay clean."""

    def __init__(self) -> None:
        self.progress = Progress(
            TextColumn("{task.fields[party]:<14}", markup=False),
            TextColumn("{task.description:<8}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=Console(file=sys.stderr),
        )
        self._tasks: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()

    def begin(self, party: str, stage: str, total: int | None) -> None:
        if stage in _SHOWN:
            with self._lock:
                self._tasks[party, stage] = self.progress.add_task(
                    stage, total=total, party=party, note=""
                )

    def advance(self, party: str, stage: str, amount: int, note: str) -> None:
        if (party, stage) in self._tasks:
            self.progress.update(self._tasks[party, stage], advance=amount, note=note)

    def end(self, party: str, stage: str, seconds: float) -> None:
        task = self._tasks.pop((party, stage), None)
        if task is not None:
            done = self.progress.tasks[task].completed
            self.progress.update(task, total=done, completed=done)
