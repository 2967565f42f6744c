"""The bandwidth of a job: a given number, or a typical distance between rows of all parties."""

from __future__ import annotations

from typing import Any

import numpy as np

from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.data.scaling import Scaling
from vertikal.errors import MeshError
from vertikal.kernels.bandwidth import (
    checked_mean,
    pair_distances,
    sample_pairs,
    weighted_median,
)
from vertikal.kernels.spectral import kernel_named
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure
from vertikal.ring.integers import Ring

DISTANCES = Disclosure(
    "distances",
    "distances of a public sample of pairs of rows, summed over the parties",
    "the leading label party learns how far apart the sampled pairs of rows are, over all columns; "
    "with two parties, how far apart they are in the other party's columns",
    masked=True,
)
MEAN = Disclosure(
    "mean distance",
    "the sum of the distances of a public sample of pairs of rows, over pairs and parties",
    "the leading label party learns one number: how far apart rows are on average",
    masked=True,
)
BANDWIDTH = Disclosure(
    "bandwidth", "the bandwidth", "everybody learns one typical distance between rows", masked=False
)


def agree_on_bandwidth(party: Party, settings: FdsklSettings, scaling: Scaling) -> float:
    """Return σ: as given, or from the distances of sampled pairs of rows; all parties get it.

    "median" is the weighted median of the distances, and the leading label party sees each of them;
    "mean" is their mean, and it sees only their sum.
    """
    if not isinstance(settings.bandwidth, str):
        return float(settings.bandwidth)
    median = settings.bandwidth == "median"
    kernel = kernel_named(settings.kernel)
    pairs = sample_pairs(party.table.rows, settings.seed)
    ring = Ring(64)
    _, factor = scaling.arrays()
    shares = pair_distances(kernel, party.table.block, factor, pairs)
    if not median:
        shares = shares.mean(axis=0, keepdims=True)
    with party.naming(f"bandwidth={settings.bandwidth!r}"):
        encoded = ring.encode_wide(shares, len(party.parties))
    total = party.secure_sum(encoded, party.leader, DISTANCES if median else MEAN)
    answer: dict[str, float] | None = None
    if total is not None and party.labels is not None:
        distances, weights = ring.decode_wide(total), party.labels.weights
        distance = (
            weighted_median(distances, weights[pairs].prod(axis=1))
            if median
            else checked_mean(float(distances[0]))
        )
        answer = {"bandwidth": kernel.typical_bandwidth(distance)}
    group = (party.leader, *(name for name in party.parties if name != party.leader))
    message: Any = party.broadcast(answer, group, BANDWIDTH)
    bandwidth = message.get("bandwidth") if isinstance(message, dict) else None
    if not isinstance(bandwidth, float) or not (np.isfinite(bandwidth) and bandwidth > 0):
        raise MeshError(
            f"{party.name}: {party.leader} announced the bandwidth {bandwidth!r}, expected a "
            "positive number"
        )
    return bandwidth
