"""Sums of ring elements that are computed from rows, block by block, in one pass over a table.

Each party computes the elements where its rows are. They are summed through the parties' own
processes, or from worker to worker where there are links (`direct_links`); who calls it does not
know which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vertikal.compute.place import Place, Rows, as_slice
from vertikal.compute.workers.spread_links import BlockWork
from vertikal.data.tables import Table
from vertikal.errors import LinkLost
from vertikal.kernels.feature_map import FeatureMap
from vertikal.party.booking import BookedMesh
from vertikal.party.direct_links import DirectLinks
from vertikal.party.sums import SecureSums
from vertikal.privacy.ledger import Disclosure
from vertikal.secure.sums.pads import PendingSum

Array: TypeAlias = npt.NDArray[Any]


class RowSums:
    """All sums of one pass; sums begin and end in the same order at all parties."""

    def __init__(
        self,
        mesh: BookedMesh,
        sums: SecureSums,
        place: Place,
        table: Table,
        disclosure: Disclosure,
        links: DirectLinks | None,
    ) -> None:
        self.mesh, self.sums, self.place, self.table = mesh, sums, place, table
        self.disclosure, self.links = disclosure, links
        self._begun: list[RowSum] = []
        if links is not None:
            links.open(table)

    def begin(
        self, to: str, feature_map: FeatureMap, offsets: Array | None, rows: Rows, room: Any
    ) -> RowSum:
        """Begin to compute this party's elements of some rows, which are summed at ``to``.

        ``offsets`` are this party's, which elements contain, if there are any. ``room`` is where
        ``to`` wants the sums, if it has a place.
        """
        begun = RowSum(self, to, feature_map, offsets, rows, room)
        self._begun.append(begun)
        begun.start()
        return begun

    def end(self, done: RowSum) -> None:
        """Leave a sum that is complete."""
        self._begun.remove(done)

    def renew(self) -> None:
        """Begin all sums again that have not ended, under pads of other keys and by new links."""
        assert self.links is not None
        self.links.open(self.table)
        self.sums.renew(self.disclosure)
        for begun in self._begun:
            begun.start()

    def close(self) -> None:
        """End the links of this pass."""
        if self.links is not None:
            self.links.close()


class RowSum:
    """One sum that has begun."""

    def __init__(
        self,
        whole: RowSums,
        to: str,
        feature_map: FeatureMap,
        offsets: Array | None,
        rows: Rows,
        room: Any,
    ) -> None:
        self._whole, self._to, self._map = whole, to, feature_map
        self._offsets, self._rows, self._room = offsets, rows, room
        self._local: Callable[[], Array] | None = None  # elements that nobody has waited for

    def start(self) -> None:
        """Begin to compute and mask this party's elements, and to send them if workers do that."""
        whole, parties = self._whole, self._whole.mesh.parties
        pending = whole.sums.begin(whole.disclosure, parties) if len(parties) > 1 else None
        self._take: Callable[[], Any]
        if pending is not None and self._linked and isinstance(rows := as_slice(self._rows), slice):
            work = BlockWork(self._map, rows, pending.mask, pending.tag)
            begin = self._summed_by_workers if self._receives else self._sent_by_workers
            self._take = begin(work, pending)
        else:
            self._take = self._through_the_port(pending)

    def finish(self) -> Any:
        """Wait for the sum; None at all parties but its receiver."""
        whole = self._whole
        while True:
            total, lost = None, ""
            try:
                total = self._take()
            except LinkLost as error:
                lost = str(error)
            if whole.links is None or whole.links.agree(self._to, lost):
                whole.end(self)
                # A sum holds itself by what it takes; nothing large may wait for the collector.
                del self._take, self._room
                return total
            whole.renew()

    @property
    def _receives(self) -> bool:
        return self._to == self._whole.mesh.me

    @property
    def _linked(self) -> bool:
        """True if this party's workers have links for this sum."""
        links, me = self._whole.links, self._whole.mesh.me
        if links is None:
            return False
        direct = links.direct[self._to]
        return bool(direct) if self._receives else me in direct

    def _through_the_port(self, pending: PendingSum | None) -> Callable[[], Array | None]:
        """Compute elements for this process, which sends them."""
        whole, to, told = self._whole, self._to, self._whole.disclosure
        mask = None if pending is None else pending.mask
        room = self._room if self._receives else None
        if self._local is not None:
            self._local()  # begun under other pads, they may still be written to the same room
        local = whole.place.begin_local(self._map, whole.table, self._rows, mask, room)
        self._local = local

        def take() -> Array | None:
            parties, elements = whole.mesh.parties, local()
            self._local = None
            if len(parties) == 1:
                return elements
            if pending is not None:
                return whole.sums.finish(pending, elements, to, told, parties)
            if self._offsets is None:
                return whole.sums.sum(elements, to, told, parties)
            return whole.sums.phase_sum(elements, self._offsets, to, told)

        return take

    def _sent_by_workers(self, work: BlockWork, pending: PendingSum) -> Callable[[], None]:
        """Let this party's workers send their elements to those of the receiver."""
        whole, to = self._whole, self._to
        assert whole.links is not None
        pending.spend()
        # Booked before: from now on nobody here knows what has left.
        with whole.mesh.under(whole.disclosure):
            whole.mesh.sent_apart(to, pending.tag, work.dtype, work.shape)
        there = whole.links.direct[to][whole.mesh.me]
        taken: Callable[[], None] = whole.links.links[to].begin_send(work, to, there)
        return taken

    def _summed_by_workers(self, work: BlockWork, pending: PendingSum) -> Callable[[], Any]:
        """Let this party's workers add what those of others send; this process adds the rest."""
        whole, to = self._whole, self._to
        assert whole.links is not None
        direct = whole.links.direct[to]
        alone = len(direct) == len(whole.mesh.peers)
        added = whole.links.links[to].begin_sum(work, direct, self._room if alone else None)

        def rest(elements: Array) -> Array | None:
            parties = whole.mesh.parties
            return whole.sums.finish(pending, elements, to, whole.disclosure, parties, direct)

        def take() -> Any:
            try:
                total = added()
            except LinkLost:
                # What others have sent through the port for this sum is of no use.
                rest(np.empty(work.shape, work.dtype))
                raise
            for name in direct:
                whole.mesh.received_apart(name, pending.tag, work.dtype, work.shape)
            return total if alone else rest(total)

        return take
