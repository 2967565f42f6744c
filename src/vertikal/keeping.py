"""Where a program's finished work is kept while it runs."""

from __future__ import annotations

from typing import Any, Protocol

import numpy.typing as npt

Array = npt.NDArray[Any]


class Keeper(Protocol):
    """Where a party keeps finished blocks of a program, to go on from after a restart."""

    def finished(self, name: str) -> int:
        """How many blocks of this name are at hand, from the first on."""

    def keep(self, name: str, number: int, block: Array) -> None: ...

    def restore(self, name: str, number: int, into: Array) -> None: ...
