"""The masked pass: phases of all rows, summed at the label party that the directions belong to.

Phases of a row under a direction never change, so each is summed once, in blocks of rows, and that
label party keeps it as bytes. Where its cache does not hold all rows, it asks for the rest again in
each pass; the feature parties serve such requests until they are told that training is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.directions import DrawnDirections, draw_directions
from vertikal.algorithms.kernel_machine.settings import FdsklSettings, Fourier, Landmarks
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.compute.element_store import ElementStore
from vertikal.compute.open_operator import OpenOperator
from vertikal.compute.place import Rows
from vertikal.errors import InputError
from vertikal.kernels.feature_map import FeatureMap
from vertikal.kernels.landmarks import LandmarkMap
from vertikal.kernels.random_features import FourierMap
from vertikal.kernels.spectral import kernel_named
from vertikal.party.party import Party
from vertikal.party.row_sums import RowSum
from vertikal.privacy.ledger import Disclosure
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]
Begun = TypeVar("Begun")

BLOCK_BYTES = 4 << 20

REQUESTS = Disclosure(
    "requests", "which rows the next pass needs", "nothing about the data", masked=False
)


def phases_of(settings: FdsklSettings) -> Disclosure:
    """Describe what the summed phases tell the label party that owns the directions."""
    if isinstance(settings.feature_map, Landmarks):
        return distances_of(settings)
    learns = "the label party that owns the directions holds these sums in the open: "
    if settings.shares_directions:
        learns += (
            "directions are shared, so it can solve for all differences between rows of the "
            "other parties' columns"
        )
    else:
        learns += (
            "it does not know the others' directions, but blind source separation still recovers "
            "many of their columns, binary ones almost exactly"
        )
    if len(settings.parties) == 2:
        learns += "; with two parties they are the other party's own phases up to a constant"
    return Disclosure(
        "phases", "phases of each row under each direction, summed over the parties", learns, True
    )


def distances_of(settings: FdsklSettings) -> Disclosure:
    """Describe what the summed distances to landmarks tell the label party that owns these."""
    learns = (
        "the label party that owns the landmarks learns how far each row is from each of these "
        "training rows over all columns, and with its own columns taken off, over the others'; the "
        "rows follow from that up to a rotation of all the others' columns together, and as many "
        "known rows as these have columns undo the rotation"
    )
    if len(settings.parties) == 2:
        learns += "; with two parties these are one party's columns"
    return Disclosure(
        "phases",
        "squared distances of each row to each landmark, summed over the parties",
        learns,
        True,
    )


@dataclass(frozen=True)
class DirectionBlock:
    """Part of this party in one label party's directions: its feature map and offsets b_ℓ."""

    feature_map: FeatureMap
    offsets: Array | None  # (width,) ring elements; landmarks have none


def begun_ahead(
    spans: Iterable[slice], begin: Callable[[slice], Begun], count: int
) -> Iterator[tuple[slice, Begun]]:
    """Yield each span with what ``begin`` returned for it, when ``count`` of them have begun."""
    waiting: deque[tuple[slice, Begun]] = deque()
    for span in spans:
        waiting.append((span, begin(span)))
        if len(waiting) >= count:
            yield waiting.popleft()
    yield from waiting


class PhasePass:
    """Part of this party in all sums of phases of one model."""

    def __init__(self, party: Party, shard: Shard) -> None:
        self.party = party
        settings = shard.settings
        if kernel_named(settings.kernel).odd and party.masking == "trees":
            raise InputError.of(
                "masking", "'pads' with kernel='linear', which has no offsets to mask by", "trees"
            )
        self._blocks = {
            label_party: _landmark_block(shard, label_party)
            if isinstance(settings.feature_map, Landmarks)
            else direction_block(shard, draw_directions(shard, label_party))
            for label_party in settings.widths()
        }
        self._disclosure = phases_of(settings)
        widest = max(settings.widths().values()) * settings.feature_map.bits // 8
        self.height = int(np.clip(BLOCK_BYTES // widest, 16, 8192))

    @property
    def own(self) -> FeatureMap:
        """Feature map of this label party's own directions."""
        return self._blocks[self.party.name].feature_map

    def stream(
        self, rows: Rows, room: Callable[[slice], Any] = lambda where: None
    ) -> Iterator[tuple[slice, Any]]:
        """Sum the phases of these rows; yield (positions, phases of own directions) by blocks.

        At a feature party, which only contributes, the phases are None. A label party's sums are
        written to what ``room`` hands out for these positions, if it does.
        """
        party = self.party
        spans = [
            slice(start, min(start + self.height, len(rows)))
            for start in range(0, len(rows), self.height)
        ]

        with party.row_sums(self._disclosure) as sums:

            def begin(where: slice) -> dict[str, RowSum]:
                return {
                    label_party: sums.begin(
                        label_party, block.feature_map, block.offsets, rows[where], room(where)
                    )
                    for label_party, block in self._blocks.items()
                }

            ahead = party.place.ahead(party.table, self.height)
            for where, parts in begun_ahead(spans, begin, ahead):
                mine = None
                for label_party, begun in parts.items():
                    with party.naming("columns"):
                        total = begun.finish()
                    if label_party == party.name:
                        mine = total
                party.clock.advance(where.stop - where.start)
                yield where, mine

    def gather(self, rows: int, kept: int) -> OpenOperator | None:
        """Take part in the one pass over the training rows; return Φ at a label party.

        The phases of the first ``kept`` rows are cached, the others asked for again in each pass.
        """
        party = self.party
        store: ElementStore | None = None
        if party.has_labels:
            store = party.place.store(self.own, kept, rows)
        begin = min(kept, self._resumed(store))

        def there(where: slice) -> slice:
            return slice(begin + where.start, begin + where.stop)

        def room(where: slice) -> Any:
            return None if store is None else store.room(there(where))

        for where, phases in self.stream(range(begin, kept), room):
            if store is not None and phases is not None:
                sums = store.add(there(where), phases)
                if party.checkpoints is not None:
                    number = there(where).start // self.height
                    party.checkpoints.save_block("phases", number, np.asarray(sums))
        if store is None:
            return None
        fetch = self._request if kept < rows else None
        return party.place.operator_of(self.own, rows, store, fetch)

    def _resumed(self, store: ElementStore | None) -> int:
        """Fill ``store`` with phases of an earlier run; return how many rows every label party has.

        The same seeds give the same phases, so these rows need not be summed again.
        """
        party = self.party
        if party.checkpoints is None:
            return 0
        blocks = min(party.blocks_saved_at(name, "phases") for name in party.label_parties)
        if store is None:
            return blocks * self.height
        begin = min(blocks * self.height, store.rows)
        for number in range(blocks):
            where = slice(number * self.height, min((number + 1) * self.height, begin))
            sums = store.restore(where)
            party.checkpoints.restore_block("phases", number, sums)
            store.restored(where, sums)
        party.clock.advance(begin)
        return begin

    def _request(self, rows: Array) -> Iterator[tuple[slice, Array]]:
        """Ask the feature parties for a pass over these rows; all label parties do so in step."""
        if self.party.leads:
            self.party.broadcast(rows.astype(np.int64), self._audience(), REQUESTS)
        for where, phases in self.stream(rows):
            if phases is not None:
                yield where, phases

    def serve(self) -> None:
        """Take part in passes, at a feature party, until the leader says that no more follow."""
        while True:
            rows = np.asarray(self.party.broadcast(None, self._audience(), REQUESTS))
            if not rows.size:
                return
            for _ in self.stream(rows):
                pass

    def finish(self) -> None:
        """Tell the feature parties, at the leader, that no more passes follow."""
        if self.party.leads and len(self._audience()) > 1:
            self.party.broadcast(np.empty(0, np.int64), self._audience(), REQUESTS)

    def _audience(self) -> tuple[str, ...]:
        party = self.party
        return (party.leader, *(p for p in party.parties if p not in party.label_parties))


def _landmark_block(shard: Shard, label_party: str) -> DirectionBlock:
    settings = shard.settings
    centre, factor = shard.scaling.arrays()
    feature_map = LandmarkMap(
        Ring(settings.feature_map.bits),
        shard.landmarks[label_party],
        shard.bandwidth,
        len(settings.parties),
        centre=centre,
        factor=factor,
    )
    return DirectionBlock(feature_map, None)


def direction_block(shard: Shard, drawn: DrawnDirections) -> DirectionBlock:
    """Make this party's part of one block, ready to compute phases."""
    settings = shard.settings
    assert isinstance(settings.feature_map, Fourier)
    feature_map = FourierMap(
        Ring(settings.feature_map.bits),
        drawn.directions,
        drawn.offsets,
        settings.n_components,
        centre=drawn.centre,
        functions=settings.feature_map.functions,
        harmonics=settings.feature_map.harmonics,
    )
    return DirectionBlock(feature_map, drawn.offsets)
