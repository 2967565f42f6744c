"""Dealing ahead of a run: the dealer works alone, and what it would send is written down.

A dealer without columns receives nothing and knows all sizes from the job, so its part of hidden
and of sealed phases can run with nobody else there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import copy
from typing import Any, NoReturn, TypeAlias

import numpy.typing as npt

from vertikal.errors import MeshError
from vertikal.mesh.interface import Mesh
from vertikal.mesh.wire import Frame
from vertikal.secure.hidden.dealing import Dealing, dealt_keys
from vertikal.secure.hidden.hidden_features import HiddenBlock, HiddenFeatures
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.sealed.sealed_features import SealedBlock, SealedFeatures

Array: TypeAlias = npt.NDArray[Any]
Write: TypeAlias = Callable[[str, Array], None]
"""Writes an array under the name of its step."""


class Nowhere(Mesh):
    """A mesh without links, for a dealer that works alone."""

    def put_frame(self, to: str, frame: Frame) -> NoReturn:
        raise MeshError(f"{self.me}: nobody is there while the dealer prepares")

    def get_frame(self, from_: str, tag: str, timeout: float) -> NoReturn:
        raise MeshError(f"{self.me}: nobody is there while the dealer prepares")

    def close(self) -> None:
        pass

    def fail(self, reason: str) -> None:
        pass


class DealingAhead(Dealing):
    """The dealer's end of the dealing, with ``write`` in place of the helper; ``keys`` by peer."""

    def __init__(self, roles: Roles, keys: Mapping[str, bytes], write: Write) -> None:
        self._roles = roles
        self._prepared = None
        self._keys = dealt_keys(roles.dealer, keys)
        self._write = write
        self._nowhere = Nowhere(roles.dealer, roles.parties)
        self._nobody = PairKeys(roles.dealer, "prepared", {})

    def of_rows(self, first: int) -> Dealing:
        there = copy(self)
        there._roles = self._roles.of_rows(first)
        return there

    def send(self, step: str, values: Array) -> None:
        self._write(step, values)

    def hidden(self, agreed: HiddenBlock) -> HiddenFeatures:
        """Make the dealer's part in features under ``disclosure="values"``."""
        return HiddenFeatures(
            self._nowhere, self._nobody, self._roles, self, agreed, lambda _: nullcontext()
        )

    def sealed(self, agreed: SealedBlock) -> SealedFeatures:
        """Make the dealer's part in a sealed fit."""
        return SealedFeatures(
            self._nowhere, self._nobody, self._roles, self, agreed, lambda _: nullcontext()
        )
