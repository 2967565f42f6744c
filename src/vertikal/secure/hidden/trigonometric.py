"""Hidden phases, step 2: from shares of a phase to shares of its cosine, by a correlation of T.

A holds a, H holds h, T its own phases t (zero for a dealer without columns); the phase of a row
under a direction is θ = a + h + t. All of Z_{2^k} for phases, Z_{2^w} with fixed point for cosines.

1. T draws ρ = ρ_A + ρ_H, one half from its seed with A, one from that with H, and lets σ = ρ − t.
2. T gives additive shares of cos σ and sin σ: A's are a seed, H's the correction, 2w bits.
3. A sends a + ρ_A to H; H adds h + ρ_H and has m = a + h + ρ, which it tells A.
4. θ = m − σ, so cos θ = cos m·cos σ + sin m·sin σ, which is linear in the shares: each multiplies
   its own by public numbers. C_A + C_H = cos θ, and nobody has multiplied two secrets.
5. With ``pairs`` also sin θ = sin m·cos σ − cos m·sin σ, of the same shares: no further message.

With w = 64 all of this is in Z_{2^64}. With w = 32 shares of cos σ and sin σ are in Z_{2^40}, and
after step 4 A and H each round the last eight bits of theirs away (`ring.wide_numbers`).

Bytes per row and direction: 16 for the correction, or 10 with w = 32, and k/8 for m in each
direction.

Proof sketch. A receives m: uniform, since ρ_H is, to A. H receives a + ρ_A, uniform since ρ_A is to
H, and corrections, uniform since A's shares are to H. T receives nothing. Given its own inputs and
seeds each single view is simulated by uniform numbers. T with A, or T with H, have ρ and m, and so
every phase: these must not collude. (A with H have a + h, the phases without the dealer's.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.mesh.interface import Mesh
from vertikal.reused_memory import reused_memory
from vertikal.ring import products
from vertikal.ring.wide_numbers import halves, wide_shape
from vertikal.secure.hidden.dealing import Dealing
from vertikal.secure.hidden.fixed_point import FixedPointProducts
from vertikal.secure.hidden.padded_link import PaddedLink
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys.agreement import PairKeys

Array = npt.NDArray[Any]


class TrigonometricShares:
    """One role's part in turning the phases of a block into shares of their cosines.

    With ``pairs`` the shares are (rows, 2D): the cosines of all directions, then their sines.
    """

    def __init__(
        self,
        mesh: Mesh,
        keys: PairKeys,
        roles: Roles,
        dealing: Dealing,
        phase_bits: int,
        fixed: FixedPointProducts,
        *,
        pairs: bool = False,
    ) -> None:
        self._pairs = pairs
        self._cos, self._sin = fixed.turns(phase_bits)
        self._dtype, self._wide = fixed.ring.dtype, fixed.wide
        self._loops = products.LOOPS
        self._dealing = dealing
        label_party, helper, _ = roles.names
        if mesh.me == label_party:
            self._halves, self._shares = dealing.seeds("half"), dealing.seeds("cosines")
            self._to_helper = PaddedLink(mesh, keys, helper, roles, "opening")
        elif mesh.me == helper:
            self._halves = dealing.seeds("half")
            self._to_label_party = PaddedLink(mesh, keys, label_party, roles, "opening")
        else:
            self._halves = dealing.seeds("half", label_party)
            self._shares = dealing.seeds("cosines", label_party)
            self._helpers_halves = dealing.seeds("half", helper)

    def deal(self, phases: Array) -> None:
        """T: make the correlation of one block, with its own phases (rows, D) folded in.

        If they were prepared ahead (by a dealer without columns), pass them on instead.
        """
        shape, dtype = phases.shape, phases.dtype
        if self._dealing.prepared:
            for _ in range(2):
                self._dealing.pass_on("corrections", *self._words(shape))
            return
        rho = self._halves.take(shape, dtype)
        rho += self._helpers_halves.take(shape, dtype)
        sigma = np.subtract(rho, phases, out=rho)
        for table in (self._cos, self._sin):
            share = self._shares.take(*self._words(shape))
            # The table's entry less A's share.
            if self._wide:
                self._loops.take_off_wide(sigma, table, halves(share))
            else:
                self._loops.take_off(sigma, table, share)
            self._dealing.send("corrections", share)

    def open_as_label_party(self, share: Array) -> Array:
        """A: compute C_A (rows, D), with pairs (rows, 2D), from its share a of the phases."""
        shape, dtype = share.shape, share.dtype
        masked = self._halves.take(shape, dtype)
        masked += share
        self._to_helper.send("sum", masked)
        cos, sin = (self._shares.take(*self._words(shape)) for _ in range(2))
        opened = self._to_helper.recv("sum", dtype, shape)  # m
        return self._rotated(opened, cos, sin)

    def open_as_helper(self, share: Array) -> Array:
        """H: compute C_H (rows, D), with pairs (rows, 2D), from its share h of the phases."""
        shape, dtype = share.shape, share.dtype
        opened = self._halves.take(shape, dtype)
        opened += share
        opened += self._to_label_party.recv("sum", dtype, shape)  # m
        self._to_label_party.send("sum", opened, keep=True)
        words, kind = self._words(shape)
        cos, sin = (self._dealing.recv("corrections", kind, words) for _ in range(2))
        return self._rotated(opened, cos, sin)

    def _words(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return shape and dtype of an array that holds as many shares of cosines or sines."""
        if self._wide:
            return wide_shape(shape), np.dtype(np.uint8)
        return shape, self._dtype

    def _rotated(self, opened: Array, cos: Array, sin: Array) -> Array:
        """A and H: its share at θ = m − σ, from its shares of cos σ and sin σ."""
        if not (self._pairs or self._wide):
            self._loops.rotate(opened, self._cos, self._sin, cos, sin)
            return cos
        width = opened.shape[1] * (2 if self._pairs else 1)
        turned = reused_memory.empty((len(opened), width), self._dtype)
        if self._wide:
            both = halves(cos), halves(sin)
            self._loops.rotate_wide(opened, self._cos, self._sin, *both, turned)
        else:
            self._loops.rotate_pair(opened, self._cos, self._sin, cos, sin, turned)
        return turned
