"""The bandwidth of a job: a given number, or a typical distance between rows of all parties."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.data.scaling import Scaling
from vertikal.errors import MeshError
from vertikal.kernels.bandwidth import pair_distances, sample_pairs, weighted_median
from vertikal.kernels.mean_distance import checked_mean, mean_distance
from vertikal.kernels.spectral import Kernel, kernel_named
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]

DISTANCES = Disclosure(
    "distances",
    "distances of a public sample of pairs of rows, summed over the parties",
    "the leading label party learns how far apart the sampled pairs of rows are, over all columns; "
    "with two parties, how far apart they are in the other party's columns; where the pairs are "
    "many for the rows, all distances follow from them, and with a few rows known the columns of "
    "all others",
    masked=True,
)
MEAN = Disclosure(
    "mean distance",
    "each party's part of the mean distance over all pairs of rows, one number, summed",
    "the leading label party learns one number: how far apart rows are on average over all "
    "columns, that is how much the columns vary together; with two parties, how much the other's "
    "columns vary together; no distance of any two rows",
    masked=True,
)
BANDWIDTH = Disclosure(
    "bandwidth",
    "the bandwidth",
    "everybody learns one number: the mean (or median) distance between rows, or a multiple of it",
    masked=False,
)


def agree_on_bandwidth(party: Party, settings: FdsklSettings, scaling: Scaling) -> float:
    """Return σ: as given, or from a typical distance between rows; all parties get it.

    "mean" is over all pairs of rows, whatever their weights: each party brings one number about its
    own columns, and the leading label party sees the total. "median" is the weighted median of
    sampled pairs, and it sees the distance of each. "0.5 mean" is half of what "mean" gives.
    """
    if not isinstance(settings.bandwidth, str):
        return float(settings.bandwidth)
    kernel = kernel_named(settings.kernel)
    find = _median if settings.typical_distance == "median" else _mean
    with party.naming(f"bandwidth={settings.bandwidth!r}"):
        distance = find(party, settings, scaling, kernel)
    answer = None
    if distance is not None:
        typical = kernel.typical_bandwidth(distance)
        answer = {"bandwidth": settings.bandwidth_factor * typical}
    group = (party.leader, *(name for name in party.parties if name != party.leader))
    message: Any = party.broadcast(answer, group, BANDWIDTH)
    bandwidth = message.get("bandwidth") if isinstance(message, dict) else None
    if not isinstance(bandwidth, float) or not (np.isfinite(bandwidth) and bandwidth > 0):
        raise MeshError(
            f"{party.name}: {party.leader} announced the bandwidth {bandwidth!r}, expected a "
            "positive number"
        )
    return bandwidth


def _mean(party: Party, settings: FdsklSettings, scaling: Scaling, kernel: Kernel) -> float | None:
    """Return the mean distance to the leading label party, and None to the others."""
    _, factor = scaling.arrays()
    share = mean_distance(kernel, party.table.block, party.table.rows, factor)
    total = _summed(party, np.array([share]), MEAN)
    return None if total is None else checked_mean(float(total[0]))


def _median(
    party: Party, settings: FdsklSettings, scaling: Scaling, kernel: Kernel
) -> float | None:
    """Return the weighted median distance to the leading label party, and None to the others."""
    pairs = sample_pairs(party.table.rows, settings.seed)
    _, factor = scaling.arrays()
    distances = _summed(party, pair_distances(kernel, party.table.block, factor, pairs), DISTANCES)
    if distances is None or party.labels is None:
        return None
    return weighted_median(distances, party.labels.weights[pairs].prod(axis=1))


def _summed(party: Party, shares: Array, disclosure: Disclosure) -> Array | None:
    ring = Ring(64)
    encoded = ring.encode_wide(shares, len(party.parties))
    total = party.secure_sum(encoded, party.leader, disclosure)
    return None if total is None else ring.decode_wide(total)
