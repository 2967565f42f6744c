"""The place of a party with workers: tables, phases and matrices go to them, if they are many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.compute.device.choice import DeviceName
from vertikal.compute.element_store import ElementStore
from vertikal.compute.open_operator import Fetch, OpenOperator
from vertikal.compute.place import Mask, Place, Rows, as_slice
from vertikal.compute.workers.cluster import Workers
from vertikal.compute.workers.sharded_table import ShardedTable, SpreadElements
from vertikal.compute.workers.spread_links import SpreadLinks
from vertikal.compute.workers.spread_operator import SpreadOperator, SpreadStore
from vertikal.compute.workers.spread_ring_matrix import SpreadRingMatrix
from vertikal.compute.workers.worker_group import WorkerGroup
from vertikal.data.tables import Table
from vertikal.kernels.feature_map import FeatureMap
from vertikal.ring.ring_matrix import RingMatrix

Array = npt.NDArray[Any]


class SpreadPlace(Place):
    """The workers that one party computes on; what is not spread over them is done here."""

    def __init__(self, group: WorkerGroup, device: DeviceName = "cpu") -> None:
        super().__init__(device)
        self.group = group
        self._maps: dict[int, tuple[FeatureMap, str]] = {}

    @property
    def tell(self) -> Callable[[str], None]:
        return self.group.tell

    @tell.setter
    def tell(self, tell: Callable[[str], None]) -> None:
        # Set by `Place` before there is a group, too.
        if hasattr(self, "group"):
            self.group.tell = tell

    def table(self, table: Table) -> Table:
        if isinstance(table, ShardedTable) or not table.rows or not table.width:
            return table
        return ShardedTable.sent(self.group, table)

    def links(self, table: Table, make: Callable[[int], Any]) -> SpreadLinks:
        assert isinstance(table, ShardedTable)
        return SpreadLinks(self.group, table, self._known, make)

    @property
    def offers_links(self) -> bool:
        return self.group.workers.direct

    def linked_workers(self, table: Table) -> int:
        offered = self.group.workers.direct and isinstance(table, ShardedTable)
        return len(self.group) if offered else 0

    def say(self, words: str) -> None:
        self.group.say(words)

    def ahead(self, table: Table, height: int) -> int:
        """Blocks of ``height`` rows that keep all workers busy, while one is sent."""
        if not isinstance(table, ShardedTable):
            return super().ahead(table, height)
        stripes = -(-table.layout.stripe // height)
        return 2 * len(self.group) * stripes

    def begin_local(
        self,
        feature_map: FeatureMap,
        table: Table,
        rows: Rows,
        mask: Mask | None = None,
        out: Any = None,
    ) -> Callable[[], Array]:
        # A place at the workers is for sums that are taken there.
        out = out if isinstance(out, np.ndarray) else None
        if not isinstance(table, ShardedTable) or not len(rows):
            return super().begin_local(feature_map, table, rows, mask, out)
        name, asked = self._known(feature_map), []
        parts = list(table.layout.parts(np.asarray(rows)))
        # Rows of a worker that are no neighbours in the block are masked here.
        there = all(isinstance(as_slice(places), slice) for _, places, _ in parts)
        size = feature_map.elements * feature_map.ring.dtype.itemsize
        for worker, places, local in parts:
            pads = mask.after(int(places[0]) * size) if mask is not None and there else None
            request = (name, table.name, local, table.rows, pads)
            asked.append((places, self.group.ask(worker, "local", *request)))
        elements = SpreadElements(asked, out)

        def result() -> Array:
            found = elements.result()
            if mask is not None and not there:
                found = np.require(found, requirements="W")
                mask(found)
            # With a mask they are only sent and added; without one they are the program's own.
            return found if mask is not None else np.require(found, requirements="W")

        return result

    def store(self, feature_map: FeatureMap, rows: int, every: int) -> ElementStore:
        # Rows that are asked for again in each pass are not worth a place at workers.
        if rows < every:
            return super().store(feature_map, rows, every)
        return SpreadStore(self.group, feature_map, rows)

    def operator_of(
        self, feature_map: FeatureMap, rows: int, store: ElementStore, fetch: Fetch | None = None
    ) -> OpenOperator:
        self._forget_maps()
        if isinstance(store, SpreadStore):
            return SpreadOperator(feature_map, store)
        return super().operator_of(feature_map, rows, store, fetch)

    def _matrix(self, shape: tuple[int, int], dtype: npt.DTypeLike) -> RingMatrix:
        return SpreadRingMatrix(shape, np.dtype(dtype), self.group)

    def _known(self, feature_map: FeatureMap) -> str:
        """Return the name of a map at the workers, to whom it is sent once."""
        found = self._maps.get(id(feature_map))
        if found is None:
            found = self._maps[id(feature_map)] = feature_map, self.group.name("map")
            self.group.change_all(found[1], "keep", self.group.store(feature_map))
        return found[1]

    def _forget_maps(self) -> None:
        self.group.forget(*(name for _, name in self._maps.values()))
        self._maps.clear()


@contextmanager
def place_of(workers: Workers | None, party: str, device: DeviceName) -> Iterator[Place]:
    """Give a party its place, with workers if there are to be some; they end with the block."""
    if workers is None:
        yield Place(device)
        return
    group = WorkerGroup(workers, party, device)
    try:
        yield SpreadPlace(group, device)
    finally:
        group.close()
