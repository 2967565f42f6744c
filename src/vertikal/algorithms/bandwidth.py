"""The bandwidth of a job: the number it was given, or the median distance, found federatedly."""

from __future__ import annotations

from typing import Any

import numpy as np

from vertikal.algorithms.settings import FdsklSettings
from vertikal.data.prepare import Scaling
from vertikal.errors import MeshError
from vertikal.kernels.bandwidth import pair_distances, sample_pairs, weighted_median
from vertikal.kernels.spectral import kernel_named
from vertikal.party import Party
from vertikal.privacy.ledger import Disclosure
from vertikal.secure.ring import Ring

DISTANCES = Disclosure(
    "distances",
    "distances of a public sample of pairs of rows, summed over the parties",
    "the leading label party learns how far apart the sampled pairs of rows are, over all columns; "
    "with two parties, how far apart they are in the other party's columns",
    masked=True,
)
BANDWIDTH = Disclosure(
    "bandwidth", "the bandwidth", "everybody learns one typical distance between rows", masked=False
)


def agree_on_bandwidth(party: Party, settings: FdsklSettings, scaling: Scaling) -> float:
    """σ: as given, or from the weighted median of sampled distances, known to all parties after."""
    if settings.bandwidth != "median":
        return float(settings.bandwidth)
    kernel = kernel_named(settings.kernel)
    pairs = sample_pairs(party.table.rows, settings.seed)
    ring = Ring(64)
    _, factor = scaling.arrays()
    shares = pair_distances(kernel, party.table.block, factor, pairs)
    with party.naming("bandwidth='median'"):
        encoded = ring.encode_wide(shares, len(party.parties))
    total = party.secure_sum(encoded, party.leader, DISTANCES)
    answer: dict[str, float] | None = None
    if total is not None and party.labels is not None:
        weights = party.labels.weights
        distance = weighted_median(ring.decode_wide(total), weights[pairs].prod(axis=1))
        answer = {"bandwidth": kernel.typical_bandwidth(distance)}
    group = (party.leader, *(name for name in party.parties if name != party.leader))
    message: Any = party.broadcast(answer, group, BANDWIDTH)
    bandwidth = message.get("bandwidth") if isinstance(message, dict) else None
    if not isinstance(bandwidth, float) or not (np.isfinite(bandwidth) and bandwidth > 0):
        raise MeshError(f"{party.name}: {party.leader} announced the bandwidth {bandwidth!r}")
    return bandwidth
