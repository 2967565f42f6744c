"""A padded link: arrays between two parties, each under a one-time pad of that pair.

Hidden phases rest on one role not reading what two others say to each other (the dealer, for one,
knows the masks between label party and helper). Rather than trust every transport to keep links
apart, each frame is padded for its reader: to anybody else it is uniform, whatever else he knows.
It costs no byte and no round. Nobody sums such frames, so the pad is not added but combined bit by
bit (exclusive or), as the cipher does by itself.

Proof sketch: the pad is a fresh stream under a key that only the pair can derive, bound to purpose
and direction, and `PadSequence` hands it out once; so a frame is uniform and
independent of all else to whoever lacks the key.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from vertikal.mesh.interface import Mesh
from vertikal.reused_memory import reused_memory
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.sums.pads import PadSequence

Array = npt.NDArray[Any]


class PaddedLink:
    """Both directions between this party and ``peer``, for one purpose."""

    def __init__(self, mesh: Mesh, keys: PairKeys, peer: str, roles: Roles, what: str) -> None:
        self.me, self.peer = mesh.me, peer
        self._mesh = mesh
        self._tag = f"hidden/{roles.label_party}/{roles.session}/{what}"
        # One sequence per direction: the name of the sender is part of the purpose.
        self._outgoing = PadSequence(keys, peer, "link", mesh.me, what, *roles.purpose)
        self._incoming = PadSequence(keys, peer, "link", peer, what, *roles.purpose)

    def send(self, step: str, values: Array, *, keep: bool = False) -> None:
        """Send ring elements to the peer.

        ``values`` is overwritten and must not be used again, unless it is to be kept.
        """
        plain = values if values.flags.c_contiguous else values.copy()
        padded = reused_memory.empty(plain.shape, plain.dtype) if keep else plain
        self._outgoing.take().encipher(plain, padded)
        self._mesh.send(self.peer, f"{self._tag}/{step}", padded)

    def recv(
        self, step: str, dtype: npt.DTypeLike, shape: tuple[int, ...], out: Array | None = None
    ) -> Array:
        """Receive the peer's next array under this step; refuse another dtype or shape.

        It is written to ``out`` where that is given.
        """
        values = reused_memory.empty(shape, dtype) if out is None else out
        padded = self._mesh.recv_array(self.peer, f"{self._tag}/{step}", dtype, shape)
        self._incoming.take().encipher(padded, values)
        return values


class OpenShares:
    """Opening of masked shares between label party and helper, for one purpose.

    Each tells the other its share. Both have the sum, which is still masked and so uniform to both;
    to everybody else each message is under a pad.
    """

    def __init__(self, mesh: Mesh, keys: PairKeys, roles: Roles, what: str) -> None:
        peer = roles.helper if mesh.me == roles.label_party else roles.label_party
        self._link = PaddedLink(mesh, keys, peer, roles, what)

    def sum(self, step: str, share: Array, out: Array | None = None) -> Array:
        """Add this role's share and the other's, in ``out`` where that is given."""
        self._link.send(step, share, keep=True)
        total = self._link.recv(step, share.dtype, share.shape, out)
        total += share
        return total
