"""A party's own part of the directions, drawn from its seed whenever it is needed.

Each party draws its coordinates of ω and its offsets b_ℓ from its own secret seed, so nobody else
knows them. ``directions="shared"``, as in the papers, draws ω from a public seed instead, so that
every party can draw the part of any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import KernelPart, Shard
from vertikal.compute.drawing import draw_in_threads
from vertikal.kernels.spectral import kernel_named
from vertikal.ring.integers import Ring
from vertikal.secure.keys.prg import derive_key, uniform_elements, uniform_reals

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class DrawnDirections:
    """Part of one party in the block of directions of one label party."""

    directions: Array  # (columns, width): ω of the raw columns, bandwidth and scaling included
    offsets: Array  # (width,) ring elements: b_ℓ
    centre: Array  # (columns,), taken off each column first


def draw_directions(shard: Shard, label_party: str) -> DrawnDirections:
    """Draw the part of the shard's party in the directions of ``label_party``."""
    settings = shard.settings
    width = settings.widths()[label_party]
    centre, factor = shard.scaling.arrays()
    seeds = seeds_of(shard, label_party)
    shared = uniform_reals(seeds["scalars"], (width,))
    uniforms = uniform_reals(seeds["directions"], (shard.width, width))
    omega = np.empty_like(uniforms)
    parts = shard.parts or (KernelPart(settings.kernel, shard.bandwidth),)
    for part, where in zip(parts, part_columns(width, len(parts)), strict=True):
        kernel = kernel_named(part.kernel)
        scalars = kernel.shared_scalars(shared[where])
        omega[:, where] = draw_in_threads(kernel, uniforms[:, where], scalars, part.bandwidth)
    # The leading bits of one draw, so that a ring of another width rounds the same offsets.
    # A party without columns brings zeros, so that a dealer can prepare its part before a run.
    bits = np.zeros(width, np.uint32)
    if kernel_named(settings.kernel).odd:
        # A quarter of a turn back, added by one party, makes sines of the cosines.
        bits += np.uint32(3 << (settings.feature_map.bits - 2)) * (shard.party == label_party)
    elif shard.columns:
        bits = uniform_elements(seeds["offsets"], (width,), np.uint32)
        bits >>= np.uint32(32 - settings.feature_map.bits)
    offsets = bits.astype(Ring(settings.feature_map.bits).dtype)
    return DrawnDirections(np.asarray(omega * factor[:, None]), offsets, centre)


def part_columns(width: int, parts: int) -> list[slice]:
    """Cut directions into runs for so many kernels, as evenly as possible."""
    ends = [width * number // parts for number in range(parts + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]


def seeds_of(shard: Shard, label_party: str) -> Mapping[str, bytes]:
    """Derive the keys by which a party draws its part of the block of ``label_party``.

    Offsets are always private, directions are private by default, and the scalars of a Matérn
    kernel are common to all parties.
    """
    public = public_key(shard.settings)
    return {
        "offsets": derive_key(shard.seed, "offsets", label_party),
        "directions": derive_key(public, "directions", label_party, shard.party)
        if shard.settings.shares_directions
        else derive_key(shard.seed, "directions", label_party),
        "scalars": derive_key(public, "scalars", label_party),
    }


def public_key(settings: FdsklSettings) -> bytes:
    """Derive the key of what everybody may know from the public seed of the settings."""
    return derive_key(settings.seed.to_bytes(32, "big"), "public")
