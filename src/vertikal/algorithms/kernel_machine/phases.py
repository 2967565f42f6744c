"""The masked pass: phases of all rows, summed at the label party that the directions belong to.

Phases of a row under a direction never change, so each is summed once, in blocks of rows, and that
label party keeps it as bytes. Where its cache does not hold all rows, it asks for the rest again in
each pass; the feature parties serve such requests until they are told that training is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.directions import DrawnDirections, draw_directions
from vertikal.algorithms.kernel_machine.settings import FdsklSettings, Fourier, Landmarks
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.compute.open_operator import OpenOperator
from vertikal.errors import InputError, MeshError
from vertikal.kernels.feature_map import FeatureMap
from vertikal.kernels.landmarks import LandmarkMap
from vertikal.kernels.random_features import FourierMap
from vertikal.kernels.spectral import kernel_named
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]

BLOCK_BYTES = 4 << 20

REQUESTS = Disclosure(
    "requests", "which rows the next pass needs", "nothing about the data", masked=False
)

RESUMED = Disclosure(
    "resumed", "how many blocks of rows a label party kept", "nothing about the data", masked=False
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
        self, rows: Array, into: Array | None = None
    ) -> Iterator[tuple[slice, Array | None]]:
        """Sum the phases of these rows; yield (positions, phases of own directions) by blocks.

        At a feature party, which only contributes, the phases are None. A label party's sums are
        written to ``into`` (rows, own directions), if it is given.
        """
        for start in range(0, len(rows), self.height):
            where = slice(start, min(start + self.height, len(rows)))
            wanted = rows[where]
            run = slice(int(wanted[0]), int(wanted[-1]) + 1)
            # A run of neighbouring rows is read as a slice: no copy of the table.
            contiguous = len(wanted) == run.stop - run.start and bool((np.diff(wanted) == 1).all())
            columns = self.party.table.block(run if contiguous else wanted)
            mine = None
            for label_party, block in self._blocks.items():
                own = label_party == self.party.name
                place = into[where] if own and into is not None else None
                with self.party.naming("columns"):
                    phases = self.party.place.local(
                        block.feature_map, columns, self.party.table.rows, place
                    )
                if block.offsets is None:
                    total = self.party.secure_sum(phases, label_party, self._disclosure)
                else:
                    total = self.party.phase_sum(
                        phases, block.offsets, label_party, self._disclosure
                    )
                if own:
                    mine = total
                    if place is not None and total is not place:
                        place[:] = total
            self.party.clock.advance(where.stop - where.start)
            yield where, mine

    def gather(self, rows: int, kept: int) -> OpenOperator | None:
        """Take part in the one pass over the training rows; return Φ at a label party.

        The phases of the first ``kept`` rows are cached, the others asked for again in each pass.
        """
        party = self.party
        cache: Array | None = None
        place: Array | None = None
        if party.has_labels:
            dtype = self.own.kept_dtype or self.own.ring.dtype
            cache = np.empty((kept, self.own.elements), dtype)
            # Sums are written where they are kept, unless they are kept in another form.
            place = cache if self.own.kept_dtype is None else None
        begin = min(kept, self._resumed(cache))
        rest = None if place is None else place[begin:]
        for where, phases in self.stream(np.arange(begin, kept), rest):
            there = slice(begin + where.start, begin + where.stop)
            if cache is not None and phases is not None and place is None:
                cache[there] = self.own.keep(phases)
            if cache is not None and party.checkpoints is not None:
                party.checkpoints.save_block("phases", there.start // self.height, cache[there])
        if cache is None:
            return None
        fetch = self._request if kept < rows else None
        return party.place.operator(self.own, rows, cache, fetch)

    def _resumed(self, cache: Array | None) -> int:
        """Fill ``cache`` with phases of an earlier run; return how many rows every label party has.

        The same seeds give the same phases, so these rows need not be summed again.
        """
        party = self.party
        if party.checkpoints is None:
            return 0
        kept = []
        for label_party in party.label_parties:
            group = (label_party, *(name for name in party.parties if name != label_party))
            mine = (
                np.array([party.checkpoints.saved_blocks("phases")], np.int64)
                if label_party == party.name
                else None
            )
            told = np.asarray(party.broadcast(mine, group, RESUMED))
            if told.dtype != np.int64 or told.shape != (1,) or told[0] < 0:
                raise MeshError(
                    f"{party.name}: {label_party} sent {told!r}, expected a number of blocks"
                )
            kept.append(int(told[0]))
        blocks = min(kept)
        if cache is None:
            return blocks * self.height
        begin = min(blocks * self.height, len(cache))
        for number in range(blocks):
            where = slice(number * self.height, min((number + 1) * self.height, begin))
            party.checkpoints.restore_block("phases", number, cache[where])
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
