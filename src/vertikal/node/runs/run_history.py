"""The history of a run under way: its stages, and the numbers that its solver told."""

from __future__ import annotations

import re
import threading
import time
from itertools import pairwise

import msgspec

MOST_STAGES = 200
MOST_POINTS = 400
_NUMBERS = re.compile(r"([A-Za-z][A-Za-z ]*) (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?=,|$)")
"""A name and a number of a note, as in ``objective 0.53, AUC 0.81``."""


class RunStage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One stage of a run that has begun: its seconds so far, and the bytes that left meanwhile."""

    name: str
    seconds: float
    bytes_out: int


class RunHistory:
    """The stages of a run and the numbers that its solver told, for who looks at it later.

    Curves keep every point of a run of usual length; of a longer one, every second, fourth, …
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: list[tuple[str, float, int]] = []
        self._curves: dict[str, list[tuple[int, float]]] = {}
        self._step = 0
        self._stride = 1

    def begin(self, stage: str, sent: int) -> None:
        """Begin a stage; a stage that begins again at once goes on."""
        with self._lock:
            if not self._begun or self._begun[-1][0] != stage:
                self._begun.append((stage, time.monotonic(), sent))
                del self._begun[:-MOST_STAGES]

    def note(self, text: str) -> None:
        """Take the numbers out of a note such as ``objective 0.53, gradient 1e-3``."""
        found = _NUMBERS.findall(text)
        if not found:
            return
        with self._lock:
            self._step += 1
            if self._step % self._stride:
                return
            for name, number in found:
                self._curves.setdefault(name.strip(), []).append((self._step, float(number)))
            if max(map(len, self._curves.values())) > MOST_POINTS:
                self._stride *= 2
                self._curves = {name: points[::2] for name, points in self._curves.items()}

    def stages(self, sent: int) -> list[RunStage]:
        """List the stages so far; ``sent`` are the bytes that have left the party by now."""
        with self._lock:
            begun = [*self._begun, ("", time.monotonic(), sent)]
        return [
            RunStage(name, then - since, max(0, later - before))
            for (name, since, before), (_, then, later) in pairwise(begun)
        ]

    def curves(self) -> dict[str, list[tuple[int, float]]]:
        with self._lock:
            return {name: list(points) for name, points in self._curves.items()}
