"""Hidden phases, step 1: the phases of all parties but the dealer, shared by two of them.

The label party A and the helper H end with uniform a and h, a + h = Σ p_ℓ mod 2^k, over all parties
but the dealer T, who brings its own phases in with the next step (`trigonometric`). Every other
party ℓ expands r_ℓ from the seed of its pair with A, and sends p_ℓ − r_ℓ to H; A adds the r_ℓ to
its own phases, H what it receives to its own. One byte (k = 8) per row, direction and sender.

With p_A = 10, p_H = 20, p_ℓ = 200 in Z_256, and r_ℓ = 77:  a = 10 + 77 = 87,
h = 20 + (200 − 77) = 143, and 87 + 143 = 230 = 10 + 20 + 200.

Proof sketch. H receives p_ℓ − r_ℓ, uniform and independent for each ℓ, since it lacks the seeds
between ℓ and A. A receives nothing. T receives nothing. So the view of each is simulated by drawing
uniform numbers, whatever the phases; H with any parties but A (or A with any but H) face the sum of
the honest ones' phases, masked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.mesh.interface import Mesh
from vertikal.secure.hidden.padded_link import PaddedLink
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.keys.seeds import SeedSequence

Array = npt.NDArray[Any]


class PhaseShares:
    """One party's part in sharing the phases of one label party's block."""

    def __init__(self, mesh: Mesh, keys: PairKeys, roles: Roles) -> None:
        self._roles = roles
        self._me = mesh.me
        self._seeds: dict[str, SeedSequence] = {}
        self._links: dict[str, PaddedLink] = {}
        if mesh.me == roles.label_party:
            for name in roles.senders:
                self._seeds[name] = SeedSequence(keys, name, "phase shares", *roles.purpose)
        elif mesh.me == roles.helper:
            for name in roles.senders:
                self._links[name] = PaddedLink(mesh, keys, name, roles, "shares")
        elif mesh.me in roles.senders:
            self._seeds[roles.label_party] = SeedSequence(
                keys, roles.label_party, "phase shares", *roles.purpose
            )
            self._links[roles.helper] = PaddedLink(mesh, keys, roles.helper, roles, "shares")

    def share(self, phases: Array) -> Array | None:
        """Take part with phases (rows, D), which are overwritten; the share at A and H."""
        shape, dtype = phases.shape, phases.dtype
        if self._me == self._roles.label_party:
            for sequence in self._seeds.values():
                np.add(phases, sequence.take(shape, dtype), out=phases)  # a = p_A + Σ r_ℓ
            return phases
        if self._me == self._roles.helper:
            for link in self._links.values():
                np.add(phases, link.recv("phases", dtype, shape), out=phases)
            return phases
        if self._me in self._roles.senders:
            mask = self._seeds[self._roles.label_party].take(shape, dtype)
            np.subtract(phases, mask, out=phases)  # p_ℓ − r_ℓ
            self._links[self._roles.helper].send("phases", phases)
        return None
