"""Where a program's finished work is kept while it runs."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Keeper(Protocol):
    """Where a party keeps finished blocks of a program, to go on from after a restart."""

    def finished(self, name: str) -> int:
        """How many blocks of this name are at hand, from the first on."""

    def keep(self, name: str, number: int, block: Array) -> None: ...

    def restore(self, name: str, number: int, into: Array) -> None: ...

    def note(self, name: str, entry: bytes, *, durable: bool = False) -> None:
        """Add to a list; ``durable`` waits until the disk has it."""

    def noted(self, name: str) -> list[bytes]:
        """All that was added to this list, in order."""


OPENED = "opened"


class KeptTally:
    """What a helper has opened to ``owner`` in all runs of a job (`openings.Tally`)."""

    def __init__(self, keeper: Keeper, owner: str) -> None:
        self._keeper = keeper
        self._name = f"{OPENED}-{owner.encode().hex()}"

    def entries(self) -> list[Array]:
        return [np.frombuffer(entry, np.int64) for entry in self._keeper.noted(self._name)]

    def add(self, entry: Array) -> None:
        self._keeper.note(self._name, entry.tobytes(), durable=True)
