"""Letters between neighbours in a file without a name, which vanishes with the process.

A letter lies at a place that follows from its receiver and from the slot of its sender among the
receiver's neighbours. So a sender writes each of its letters where it belongs, a receiver's letters
are read in one piece, and nothing about a pair is in memory. n clients with k neighbours each take
n·(k + 1)·(size + 1) bytes of the disk: the byte before a letter says that it has come.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from vertikal.errors import SecrecyError
from vertikal.files import disk_error, nameless_file
from vertikal.secure.secagg.neighbours import Neighbours

_HERE = b"\1"


class LettersOnDisk:
    """The letters of one stage; see `secure.secagg.letters.Letters`."""

    def __init__(self, graph: Neighbours, size: int, folder: Path) -> None:
        self._graph = graph
        self._size = size
        self._folder = folder
        self._row = (graph.plan.degree + 1) * (size + 1)
        self._file = nameless_file(folder)

    def put(self, sender: str, letters: Mapping[str, bytes]) -> None:
        places = {}
        for receiver, letter in letters.items():
            slot = self._graph.slot(receiver, sender)
            if slot is None:
                continue
            if len(letter) != self._size:
                raise SecrecyError(f"{sender}: a letter of another length to {receiver}")
            places[self._start(receiver) + slot * (self._size + 1)] = letter
        number = self._file.fileno()
        try:
            for place, letter in places.items():
                os.pwrite(number, _HERE + letter, place)
        except OSError as error:
            raise disk_error(self._folder, error) from None

    def to(self, receiver: str) -> dict[str, bytes]:
        raw = os.pread(self._file.fileno(), self._row, self._start(receiver))
        step = self._size + 1
        return {
            self._graph.at_slot(receiver, slot): raw[place + 1 : place + step]
            for slot, place in enumerate(range(0, len(raw), step))
            if raw[place : place + 1] == _HERE
        }

    def close(self) -> None:
        """Forget all letters."""
        self._file.close()

    def _start(self, receiver: str) -> int:
        return self._graph.place(receiver) * self._row
