"""Landmarks of a job: which rows they are, each party's own coordinates, and the whitening."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.algorithms.kernel_machine.phases import PhasePass
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.kernels.landmarks import FLOOR, Whitening, landmark_rows, whitening
from vertikal.party.party import Party

Array = npt.NDArray[Any]


def keep_landmarks(party: Party, shard: Shard) -> Shard:
    """The shard with this party's own, scaled coordinates of the landmarks, if the map has any."""
    settings = shard.settings
    if settings.feature_map != "landmarks":
        return shard
    centre, factor = shard.scaling.arrays()
    kept = {}
    for owner, rows in landmark_rows(party.table.rows, settings.widths(), settings.seed).items():
        block = party.table.block(rows)
        dense = block.toarray() if sparse.issparse(block) else block
        kept[owner] = (dense - centre) * factor
    return replace(shard, landmarks=kept)


def whiten(party: Party, shard: Shard) -> Whitening | None:
    """Sum the distances among the landmarks; at a label party, the factor that whitens its block.

    All parties take part. These few distances are summed in 32 bits whatever the others are: the
    inverse of the kernel among landmarks would magnify their rounding. With several label parties
    each block stands for the whole kernel, so that its features carry its share.
    """
    settings = shard.settings
    if settings.feature_map != "landmarks":
        return None
    factor = None
    rows = landmark_rows(party.table.rows, settings.widths(), settings.seed)
    fine = replace(shard, settings=msgspec.structs.replace(settings, ring_bits=32))
    phases = PhasePass(party, fine)
    for owner, chosen in rows.items():
        mine = party.name == owner
        kernel = np.empty((len(chosen), len(chosen)) if mine else (0, 0))
        for where, total in phases.stream(chosen):
            if mine and total is not None:
                kernel[where] = phases.own.decode(total, np.float64)
        if mine:
            factor = whitening(
                kernel, len(chosen) / settings.n_components, FLOOR[settings.ring_bits]
            )
    return factor
