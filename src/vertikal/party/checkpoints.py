"""Checkpoints as a program sees them: blocks and lists that outlive a run of its job."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Checkpoints(Protocol):
    """Finished work of one party in one job, from which its next run goes on."""

    def saved_blocks(self, name: str) -> int:
        """Count the blocks of this name that are saved, from the first on without a gap."""

    def save_block(self, name: str, number: int, block: Array) -> None: ...

    def restore_block(self, name: str, number: int, into: Array) -> None: ...

    def append(self, name: str, entry: bytes, *, durable: bool = False) -> None:
        """Add an entry to a list; ``durable`` waits until the disk has it."""

    def entries(self, name: str) -> list[bytes]:
        """Return all entries of a list, in order."""


OPENED = "opened"


class PartOfCheckpoints:
    """Checkpoints of one part of a job, under names of their own.

    A program that takes several passes over the rows keeps each of them apart.
    """

    def __init__(self, whole: Checkpoints, part: str) -> None:
        self._whole = whole
        # After the name, by whose beginning lists of what was opened are known.
        self._ending = f".{part}"

    def saved_blocks(self, name: str) -> int:
        return self._whole.saved_blocks(name + self._ending)

    def save_block(self, name: str, number: int, block: Array) -> None:
        self._whole.save_block(name + self._ending, number, block)

    def restore_block(self, name: str, number: int, into: Array) -> None:
        self._whole.restore_block(name + self._ending, number, into)

    def append(self, name: str, entry: bytes, *, durable: bool = False) -> None:
        self._whole.append(name + self._ending, entry, durable=durable)

    def entries(self, name: str) -> list[bytes]:
        return self._whole.entries(name + self._ending)


class CheckpointedTally:
    """Count of all that a helper has opened to ``label_party`` in the runs of one job.

    It is an `openings.Tally`.
    """

    def __init__(self, checkpoints: Checkpoints, label_party: str) -> None:
        self._checkpoints = checkpoints
        self._name = f"{OPENED}-{label_party.encode().hex()}"

    def entries(self) -> list[Array]:
        return [np.frombuffer(entry, np.int64) for entry in self._checkpoints.entries(self._name)]

    def add(self, entry: Array) -> None:
        self._checkpoints.append(self._name, entry.tobytes(), durable=True)
