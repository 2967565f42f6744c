"""Sealed: a shared number times one that only A knows, entry by entry.

Weights and labels are A's alone, and enter the residual as factors: A holds w (rows, k), the same
in every step; A and H hold x = x_A + x_H (rows, k) and are to have shares of w·x.

Once: A and T expand a mask m from their seed; A sends d = w − m to H.
Per use: H and T expand y from their seed, A and T expand p; T sends q = m·y − p to H. H sends
e = x_H − y to A. Then A keeps w·x_A + m·e + p and H keeps d·x_H + q:

    w·x_A + m·(x_H − y) + p + (w − m)·x_H + m·y − p  =  w·(x_A + x_H).

In Z_10 with w = 3, x = 4 + 5, m = 8, y = 6, p = 2: d = 5, q = 48 − 2 = 6, e = 9;
A keeps 12 + 72 + 2 = 6, H keeps 25 + 6 = 1, and 6 + 1 = 7 = 3·9.

Proof sketch. H receives d and q: uniform, since m and p are to H. A receives e: uniform, since y is
to A. T receives nothing. There is no output.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.mesh.interface import Mesh
from vertikal.secure.hidden.dealing import Dealing
from vertikal.secure.hidden.padded_link import PaddedLink
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys.agreement import PairKeys

Array = npt.NDArray[Any]


class SharedScaling:
    """One role's part in all products with A's factors (rows, k)."""

    def __init__(
        self, mesh: Mesh, keys: PairKeys, roles: Roles, dealing: Dealing, shape: tuple[int, int]
    ) -> None:
        self._me, self._roles, self._dealing, self._shape = mesh.me, roles, dealing, shape
        label_party, helper, dealer = roles.names
        if mesh.me == dealer:
            self._mask = dealing.seeds("factors", label_party).take(shape, np.uint64)
            self._shares = dealing.seeds("scaled", label_party)
            self._vectors = dealing.seeds("scaling", helper)
        elif mesh.me == label_party:
            self._mask = dealing.seeds("factors").take(shape, np.uint64)
            self._shares = dealing.seeds("scaled")
            self._link = PaddedLink(mesh, keys, helper, roles, "scaling")
        else:
            self._vectors = dealing.seeds("scaling")
            self._link = PaddedLink(mesh, keys, label_party, roles, "scaling")

    def hold(self, factors: Array | None) -> None:
        """A: the factors w, which H gets under a mask. The others bring None."""
        if self._me == self._roles.label_party and factors is not None:
            self._factors = factors
            self._link.send("factors", factors - self._mask)
        elif self._me == self._roles.helper:
            self._factors = self._link.recv("factors", np.uint64, self._shape)

    def scale(self, share: Array) -> Array:
        """A and H: shares of w·x from their shares of x. T deals, and gets zeros."""
        shape = self._shape
        if self._me == self._roles.label_party:
            result = self._factors * share
            result += self._shares.take(shape, np.uint64)
            result += self._mask * self._link.recv("scaled", np.uint64, shape)
            return result
        if self._me == self._roles.helper:
            self._link.send("scaled", share - self._vectors.take(shape, np.uint64))
            result = self._factors * share
            result += self._dealing.recv("scaled", np.uint64, shape)
            return result
        if self._dealing.prepared:
            self._dealing.pass_on("scaled", shape, np.uint64)
        else:
            dealt = self._mask * self._vectors.take(shape, np.uint64)
            dealt -= self._shares.take(shape, np.uint64)
            self._dealing.send("scaled", dealt)
        return np.zeros(shape, np.uint64)
