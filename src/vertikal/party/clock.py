"""The stages of one party's work, with their time and bytes, and the observer that is told.

A stage is a named step of work, such as the key agreement or the solver. Progress goes to an
observer, which may draw a bar, or do nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol


class Observer(Protocol):
    """An observer is told of every stage and of its progress, in the party's own thread."""

    def begin(self, party: str, stage: str, total: int | None) -> None: ...
    def advance(self, party: str, stage: str, amount: int, note: str) -> None: ...
    def end(self, party: str, stage: str, seconds: float) -> None: ...


class Silent:
    """The observer that says nothing."""

    def begin(self, party: str, stage: str, total: int | None) -> None:
        pass

    def advance(self, party: str, stage: str, amount: int, note: str) -> None:
        pass

    def end(self, party: str, stage: str, seconds: float) -> None:
        pass


@dataclass
class Stage:
    """Seconds and bytes of one stage."""

    seconds: float = 0.0
    bytes_sent: int = 0


@dataclass
class Clock:
    """The stages of one party, in the order in which they began."""

    party: str
    observer: Observer
    sent: Callable[[], int]
    stages: dict[str, Stage] = field(default_factory=dict)
    _current: list[str] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[None]:
        """Book the time and bytes of the block inside under ``name``."""
        entry = self.stages.setdefault(name, Stage())
        self.observer.begin(self.party, name, total)
        self._current.append(name)
        began, before = time.perf_counter(), self.sent()
        try:
            yield
        finally:
            seconds = time.perf_counter() - began
            entry.seconds += seconds
            entry.bytes_sent += self.sent() - before
            self._current.pop()
            self.observer.end(self.party, name, seconds)

    def advance(self, amount: int = 1, note: str = "") -> None:
        """Tell the observer that ``amount`` more of the current stage is done."""
        if self._current:
            self.observer.advance(self.party, self._current[-1], amount, note)
