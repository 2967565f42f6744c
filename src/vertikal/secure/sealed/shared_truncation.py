"""Sealed: dropping fraction bits of a shared number, without ever being far off.

A product of fixed-point numbers has the fraction bits of both. A and H hold x = x_A + x_H mod 2^64,
|x| < 2^62, and are to have shares of x / 2^s. Cutting each share by itself is wrong by 2^(64 − s)
now and then (once in 2^24 for numbers of 40 bits): with thousands of rows and hundreds of steps it
happens. With a correlation of the dealer's it never does.

A and T expand r_A from their seed, H and T expand r_H; r = r_A + r_H. T gives shares of
⌊(r mod 2^63) / 2^s⌋ and of the highest bit of r: A's by seed, H's as corrections. A adds 2^62 to
its share, so that 0 ≤ x < 2^63, and A and H tell each other x_A + r_A and x_H + r_H: both have
c = x + r. Since x = c − r,

    ⌊x / 2^s⌋  =  ⌊(c mod 2^63) / 2^s⌋ − ⌊(r mod 2^63) / 2^s⌋ + b·2^(63 − s), or one less,

where b says whether c mod 2^63 < r mod 2^63, which is so exactly if the highest bits of c and r
differ: linear in the shares, since c is known to both. The result is x / 2^s rounded up or down, by
chance in proportion to the rest: right on average.

In 8 bits with s = 2, x = 21, r = 200: c = 221, both highest bits are 1, b = 0, and
⌊93/4⌋ − ⌊72/4⌋ = 23 − 18 = 5 = ⌊21/4⌋.

Proof sketch. A and H receive c less their own half: uniform, since r is, to either. H's corrections
are uniform since A's shares are to H. T receives nothing. There is no output.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError
from vertikal.mesh.interface import Mesh
from vertikal.secure.hidden.dealing import Dealing
from vertikal.secure.hidden.padded_link import OpenShares
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys.agreement import PairKeys

Array = npt.NDArray[Any]

RANGE_BITS = 62
"""Numbers must be smaller than 2 to this in magnitude."""

_LOW = np.uint64(2**63 - 1)
_TOP = np.uint64(63)


class SharedTruncation:
    """One role's part in all truncations of one run."""

    def __init__(self, mesh: Mesh, keys: PairKeys, roles: Roles, dealing: Dealing) -> None:
        self._me, self._roles, self._dealing = mesh.me, roles, dealing
        label_party, helper, dealer = roles.names
        if mesh.me == dealer:
            self._halves = [dealing.seeds("rounding", name) for name in (label_party, helper)]
            self._shares = dealing.seeds("rounded", label_party)
            return
        self._halves = [dealing.seeds("rounding")]
        self._opening = OpenShares(mesh, keys, roles, "truncation")
        if mesh.me == label_party:
            self._shares = dealing.seeds("rounded")

    def drop(self, share: Array, bits: int) -> Array:
        """A and H: shares of x / 2^bits from their shares of x. T deals, and gets zeros."""
        if not 0 < bits < RANGE_BITS:
            raise InputError.of("bits", f"from 1 to {RANGE_BITS - 1}", bits)
        if self._me == self._roles.dealer:
            return self._deal(share.shape, np.uint64(bits))
        shape, by, owns = share.shape, np.uint64(bits), self._me == self._roles.label_party
        half = share + self._halves[0].take(shape, np.uint64)
        if owns:
            half += np.uint64(1 << RANGE_BITS)
        opened = self._opening.sum("rounding", half)  # c
        rounded, highest = (
            self._shares.take(shape, np.uint64)
            if owns
            else self._dealing.recv("rounded", np.uint64, shape)
            for _ in range(2)
        )
        turn = np.uint64(1 << (63 - bits))
        top: Array = opened >> _TOP
        # b = top + (1 − 2·top)·(highest bit of r), in the ring.
        result: Array = highest * (np.uint64(1) - (top << np.uint64(1)))
        if owns:
            result += top
        result *= turn
        result -= rounded
        if owns:
            result += (opened & _LOW) >> by
            result -= np.uint64(1 << (RANGE_BITS - bits))
        return result

    def _deal(self, shape: tuple[int, ...], by: np.uint64) -> Array:
        if self._dealing.prepared:
            for _ in range(2):
                self._dealing.pass_on("rounded", shape, np.uint64)
            return np.zeros(shape, np.uint64)
        label_party, helper = self._halves
        r = label_party.take(shape, np.uint64)
        r += helper.take(shape, np.uint64)
        for value in ((r & _LOW) >> by, r >> _TOP):
            self._dealing.send("rounded", value - self._shares.take(shape, np.uint64))
        return np.zeros(shape, np.uint64)
