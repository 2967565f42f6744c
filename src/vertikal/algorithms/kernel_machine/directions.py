"""Drawing a party's own part of the directions from its seed, again and again the same.

Each party draws its coordinates of ω and its offsets b_ℓ from its own secret seed, so nobody else
knows them. ``directions="shared"``, as in the papers, draws ω from a public seed instead: then
everybody can draw everybody's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.kernels.spectral import kernel_named
from vertikal.ring.integers import Ring
from vertikal.secure.keys.prg import derive_key, uniform_elements, uniform_reals

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Drawn:
    """One party's part of one label party's block of directions."""

    directions: Array  # (columns, width): ω of the raw columns, bandwidth and scaling included
    offsets: Array  # (width,) ring elements: b_ℓ
    centre: Array  # (columns,), taken off each column first


def draw(shard: Shard, label_party: str) -> Drawn:
    """The part of ``label_party``'s directions that the shard's party holds."""
    settings, kernel = shard.settings, kernel_named(shard.settings.kernel)
    width = settings.widths()[label_party]
    centre, factor = shard.scaling.arrays()
    seeds = seeds_of(shard, label_party)
    scalars = kernel.shared_scalars(uniform_reals(seeds["scalars"], (width,)))
    uniforms = uniform_reals(seeds["directions"], (len(shard.columns), width))
    omega = kernel.directions(uniforms, scalars) / shard.bandwidth
    # The leading bits of one draw: another width of the ring rounds the same offsets.
    # Whoever has no columns brings nothing: a dealer may then prepare its part before a run.
    bits = np.zeros(width, np.uint32)
    if shard.columns:
        bits = uniform_elements(seeds["offsets"], (width,), np.uint32)
        bits >>= np.uint32(32 - settings.ring_bits)
    offsets = bits.astype(Ring(settings.ring_bits).dtype)
    return Drawn(np.asarray(omega * factor[:, None]), offsets, centre)


def seeds_of(shard: Shard, label_party: str) -> Mapping[str, bytes]:
    """The keys that a party draws its part of ``label_party``'s block with.

    Offsets are always private, directions are private by default, and the scalars of a Matérn
    kernel are common to all parties.
    """
    public = public_key(shard.settings)
    private = shard.settings.directions == "private"
    return {
        "offsets": derive_key(shard.seed, "offsets", label_party),
        "directions": derive_key(shard.seed, "directions", label_party)
        if private
        else derive_key(public, "directions", label_party, shard.party),
        "scalars": derive_key(public, "scalars", label_party),
    }


def public_key(settings: FdsklSettings) -> bytes:
    """The key of what everybody may know: drawn from the public seed of the settings."""
    return derive_key(settings.seed.to_bytes(32, "big"), "public")
