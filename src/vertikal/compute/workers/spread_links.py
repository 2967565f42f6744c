"""Ring elements that go from worker to worker between parties, as the party's own process sees it.

It says which rows are computed, under which pads, and where they go: each run of rows that lies at
one worker of both parties is a piece of its own. Parties have their rows in one order, but maybe
over different numbers of workers:

    rows               0 … 4095   4096 … 8191   8192 … 12287
    a, two workers     worker 1   worker 2      worker 1
    b, three workers   worker 1   worker 2      worker 3
    pieces             1 → 1      2 → 2         1 → 3
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.compute.place import Mask
from vertikal.compute.workers.row_layout import RowLayout
from vertikal.compute.workers.shard_worker import LocalWork, Piece, RowLinks
from vertikal.compute.workers.sharded_table import ShardedTable
from vertikal.compute.workers.spread_operator import SpreadRoom, SpreadTotal
from vertikal.compute.workers.worker_group import Pending, WorkerGroup, answers
from vertikal.errors import LinkLost
from vertikal.kernels.feature_map import FeatureMap

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class BlockWork:
    """Ring elements of neighbouring rows, for one sum."""

    feature_map: FeatureMap
    rows: slice
    mask: Mask
    tag: str

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.feature_map.ring.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return (self.rows.stop - self.rows.start, self.feature_map.elements)


class SpreadLinks:
    """Links of all workers of a party towards one label party, or at it, until they are closed."""

    def __init__(
        self,
        group: WorkerGroup,
        table: ShardedTable,
        known: Callable[[FeatureMap], str],
        make: Callable[[int], RowLinks],
    ) -> None:
        self._group, self._table, self._known = group, table, known
        self._name = group.name("links")
        for worker in range(len(group)):
            group.change(worker, self._name, "open_links", make, worker)

    def listen(self) -> list[str]:
        """Let others dial the workers; returns their addresses. OSError if a port is taken."""
        first = self._group.workers.first_port
        ports = [0 if first is None else first + worker for worker in range(len(self._group))]
        asked = [
            self._group.ask(worker, "listen", self._name, port) for worker, port in enumerate(ports)
        ]
        return [str(address) for address in answers(asked)]

    def dial(self, peer: str, addresses: Sequence[str]) -> None:
        """Let every worker make a link to every one of ``peer``; LinkLost if one cannot."""
        answers(
            [
                self._group.ask(worker, "dial", self._name, peer, addresses)
                for worker in range(len(self._group))
            ]
        )

    def begin_send(self, work: BlockWork, peer: str, workers: int) -> Callable[[], None]:
        """Begin to compute elements and to send them to the workers of ``peer``."""
        asked = [
            self._group.ask_once(
                owner, "send_local", self._name, local, peer, self._pieces(work, run, workers)
            )
            for owner, run, local in self._runs(work)
        ]

        def result() -> None:
            _all(asked)

        return result

    def begin_sum(
        self, work: BlockWork, peers: dict[str, int], room: Any
    ) -> Callable[[], Array | SpreadTotal]:
        """Begin to compute elements and to add those that workers of the ``peers`` send.

        With a place in a store at the workers the sums stay there.
        """
        stays = isinstance(room, SpreadRoom)
        returned = not stays or self._group.workers.retries > 0
        asked, runs = [], []
        for owner, run, local in self._runs(work):
            pieces = {peer: self._pieces(work, run, workers) for peer, workers in peers.items()}
            kept = (room.store.name, room.store.layout.place(run.start)) if stays else None
            request = (self._name, local, pieces, kept, returned)
            asked.append(self._group.ask_once(owner, "sum_local", *request))
            runs.append(run)

        def result() -> Array | SpreadTotal:
            found = _all(asked)
            if stays:
                return SpreadTotal(room, list(zip(runs, asked, found, strict=True)))
            return np.concatenate(found)

        return result

    def close(self) -> None:
        """End the links at both ends, once the workers have done what was asked before.

        Workers of others that wait for more learn by it that nothing follows.
        """
        self._group.forget(self._name)
        self._group.let_go()

    def _runs(self, work: BlockWork) -> list[tuple[int, slice, LocalWork]]:
        """Return (worker, its rows, the request) for each run of rows at one worker."""
        layout, name = self._table.layout, self._known(work.feature_map)
        size = work.feature_map.elements * work.feature_map.ring.dtype.itemsize
        found = []
        for run in layout.runs(work.rows):
            start = layout.place(run.start)
            local = LocalWork(
                name,
                self._table.name,
                np.arange(start, start + run.stop - run.start),
                self._table.rows,
                work.mask.after((run.start - work.rows.start) * size),
            )
            found.append((layout.owner(run.start), run, local))
        return found

    def _pieces(self, work: BlockWork, run: slice, workers: int) -> list[Piece]:
        """Return the pieces of one run, each with the worker of the other party that has its rows.

        Both parties cut at the same rows, so that the sum and the first row name a piece.
        """
        layout, other = self._table.layout, RowLayout(self._table.rows, workers)
        return [
            Piece(
                other.owner(rows.start),
                f"{work.tag}/{rows.start}",
                slice(rows.start - run.start, rows.stop - run.start),
            )
            for rows in layout.runs(run, other)
        ]


def _all(asked: Sequence[Pending]) -> list[Any]:
    """Wait for all answers, also for those that come after one was lost."""
    found, lost = [], None
    for pending in asked:
        try:
            found.append(pending.answer())
        except LinkLost as error:
            lost = error
    if lost is not None:
        raise lost
    return found
