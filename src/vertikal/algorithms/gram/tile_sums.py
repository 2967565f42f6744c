"""Secure sums of a kernel, tile by tile, of which a broken-off run leaves the finished ones.

Inner products of the same rows never change and are summed exactly, so the leader keeps each tile
of sums in its checkpoints. In the next run nobody computes or sends these again. Every run has keys
of its own: a tile that was sent and not kept is sent again under other pads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import MeshError
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]


class TileSums:
    """Sums of the tiles of one kernel at the leader, in the order that all parties take.

    ``count`` tiles of ring elements are to come. ``of`` says what else they depend on that all
    parties know: tiles that were kept of another ring or other landmarks are not taken for these.
    ``resumes`` is false where nothing is to be kept, as in a prediction.
    """

    def __init__(
        self,
        party: Party,
        ring: Ring,
        disclosure: Disclosure,
        count: int,
        of: bytes = b"",
        *,
        resumes: bool,
    ) -> None:
        self._party, self._ring, self._disclosure = party, ring, disclosure
        self._kept_at = party.checkpoints if resumes else None
        about = hashlib.sha256(b"%d %d " % (ring.bits, count) + of).hexdigest()
        self._name = f"kernel-{about[:16]}"
        self._next = 0
        self._kept = party.blocks_saved_at(party.leader, self._name) if resumes else 0
        if self._kept > count:
            raise MeshError(
                f"{party.name}: {party.leader} says that it kept {self._kept} tiles of the "
                f"kernel, which has {count}"
            )

    def sum(self, size: int, own: Callable[[], Array]) -> Array | None:
        """Sum the next tile, of ``size`` elements; None but at the leader.

        ``own`` computes this party's elements. It is not called for a tile that was kept.
        """
        party, number = self._party, self._next
        self._next += 1
        if number < self._kept:
            return self._restored(number, size)
        total = party.secure_sum(own(), party.leader, self._disclosure)
        if total is not None and self._kept_at is not None:
            self._kept_at.save_block(self._name, number, total)
        return total

    def _restored(self, number: int, size: int) -> Array | None:
        if not self._party.leads or self._kept_at is None:
            return None
        tile = np.empty(size, self._ring.dtype)
        self._kept_at.restore_block(self._name, number, tile)
        return tile
