"""Two roles tell each other their masked halves; both have the sum, everybody else a pad.

This is how shares under masks are opened: what is opened is uniform to both.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from vertikal.mesh.interface import Mesh
from vertikal.secure.hidden.padded_link import ClosedLink
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys.agreement import PairKeys

Array = npt.NDArray[Any]


class Exchange:
    """Label party and helper, for one purpose."""

    def __init__(self, mesh: Mesh, keys: PairKeys, roles: Roles, what: str) -> None:
        peer = roles.helper if mesh.me == roles.label_party else roles.label_party
        self._link = ClosedLink(mesh, keys, peer, roles, what)

    def sum(self, step: str, half: Array) -> Array:
        """This role's half and the other's."""
        self._link.send(step, half.copy())
        total = self._link.recv(step, half.dtype, half.shape)
        total += half
        return total
