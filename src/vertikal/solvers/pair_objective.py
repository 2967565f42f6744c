"""Sums over all pairs of a positive and a negative row, without writing the pairs down.

    R(f) = Σ_{i∈P, j∈N} w_i w_j l(f_i, f_j) / Σ_{i∈P, j∈N} w_i w_j

With the square loss R is a function of class means and variances: O(n). With the squared hinge loss
the negatives that matter to a positive row are those above f_i − 1, a run of them once they are
sorted: O(n log n). The logistic loss has no such form; it is summed over all pairs while these are
few, and over pairs drawn at random where they are not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.losses.pairwise import PairLoss
from vertikal.solvers.objective import Objective, column_products

Array = npt.NDArray[Any]

MOST_PAIRS = 1 << 22
"""The most pairs that are summed one by one in a pass; of more, so many are drawn."""

_CHUNK = 1 << 20


class PairSums(ABC):
    """R and its derivatives as functions of the predictions u of positives and v of negatives."""

    said: str
    """A few words that say which pairs are summed."""

    @abstractmethod
    def value(self, u: Array, v: Array) -> float:
        """R."""

    @abstractmethod
    def gradient(self, u: Array, v: Array) -> tuple[Array, Array]:
        """∂R/∂u and ∂R/∂v."""

    @abstractmethod
    def bend(self, u: Array, v: Array, du: Array, dv: Array) -> float:
        """The second derivative of R along (du, dv)."""


class SquareSums(PairSums):
    """R = E(1 − u + v)², from means and variances; the weights p and q of a class sum to one."""

    def __init__(self, p: Array, q: Array) -> None:
        self._p, self._q = p, q
        self.said = f"all {len(p) * len(q):,} pairs"

    def value(self, u: Array, v: Array) -> float:
        mean_u, mean_v = self._p @ u, self._q @ v
        spread = self._p @ np.square(u - mean_u) + self._q @ np.square(v - mean_v)
        return float((1 - mean_u + mean_v) ** 2 + spread)

    def gradient(self, u: Array, v: Array) -> tuple[Array, Array]:
        mean_u, mean_v = self._p @ u, self._q @ v
        return -2 * self._p * (1 - u + mean_v), 2 * self._q * (1 - mean_u + v)

    def bend(self, u: Array, v: Array, du: Array, dv: Array) -> float:
        mean_u, mean_v = self._p @ du, self._q @ dv
        spread = self._p @ np.square(du - mean_u) + self._q @ np.square(dv - mean_v)
        return float(2 * ((mean_u - mean_v) ** 2 + spread))


class HingeSums(PairSums):
    """R = E max(0, 1 − u + v)², by sorting: a pair counts where v > u − 1.

    With a = 1 − u_i, the sum over the negatives that count is a²S₀ + 2aS₁ + S₂, where S_k is the
    sum of q·v^k over them, found as a difference of cumulated sums.
    """

    def __init__(self, p: Array, q: Array) -> None:
        self._p, self._q = p, q
        self.said = f"all {len(p) * len(q):,} pairs"

    def value(self, u: Array, v: Array) -> float:
        u, v = _centred(u, v)
        q0, q1, q2 = self._above(u, v, (self._q, self._q * v, self._q * v * v))
        a = 1 - u
        return float(self._p @ np.maximum(0.0, a * a * q0 + 2 * a * q1 + q2))

    def gradient(self, u: Array, v: Array) -> tuple[Array, Array]:
        u, v = _centred(u, v)
        q0, q1 = self._above(u, v, (self._q, self._q * v))
        p0, p1 = self._below(u, v, (self._p, self._p * u))
        return -2 * self._p * ((1 - u) * q0 + q1), 2 * self._q * ((1 + v) * p0 - p1)

    def bend(self, u: Array, v: Array, du: Array, dv: Array) -> float:
        u, v = _centred(u, v)
        q0, q1, q2 = self._above(u, v, (self._q, self._q * dv, self._q * dv * dv))
        return float(2 * self._p @ np.maximum(0.0, du * du * q0 - 2 * du * q1 + q2))

    def _above(self, u: Array, v: Array, terms: tuple[Array, ...]) -> list[Array]:
        """For each positive row, the sums of these terms over the negatives with v > u − 1."""
        order = np.argsort(v)
        first = np.searchsorted(v[order], u - 1, side="right")
        return [_tails(term[order])[first] for term in terms]

    def _below(self, u: Array, v: Array, terms: tuple[Array, ...]) -> list[Array]:
        """For each negative row, the sums of these terms over the positives with u − 1 < v."""
        order = np.argsort(u)
        past = np.searchsorted(u[order] - 1, v, side="left")
        return [_heads(term[order])[past] for term in terms]


class ListedSums(PairSums):
    """R over the pairs of a list, in chunks; for any loss."""

    def __init__(self, loss: PairLoss, p: Array, q: Array, seed: int, most: int) -> None:
        self._loss = loss
        self._p, self._q = p, q
        count = len(p) * len(q)
        self._drawn: tuple[Array, Array] | None = None
        self.said = f"all {count:,} pairs"
        if count > most:
            generator = np.random.default_rng(seed)
            self._drawn = (_choose(generator, p, most), _choose(generator, q, most))
            self.said = f"{most:,} of {count:,} pairs, drawn at random"

    def value(self, u: Array, v: Array) -> float:
        return float(sum(w @ self._loss.of_margin(u[i] - v[j]) for i, j, w in self._chunks()))

    def gradient(self, u: Array, v: Array) -> tuple[Array, Array]:
        first, second = np.zeros_like(u), np.zeros_like(v)
        for i, j, w in self._chunks():
            slope = w * self._loss.slope(u[i] - v[j])
            first += np.bincount(i, slope, len(u))
            second -= np.bincount(j, slope, len(v))
        return first, second

    def bend(self, u: Array, v: Array, du: Array, dv: Array) -> float:
        return float(
            sum(
                w @ (self._loss.bend(u[i] - v[j]) * np.square(du[i] - dv[j]))
                for i, j, w in self._chunks()
            )
        )

    def _chunks(self) -> Iterator[tuple[Array, Array, Array]]:
        """(positive, negative, weight) of the pairs, some at a time."""
        if self._drawn is not None:
            for start in range(0, len(self._drawn[0]), _CHUNK):
                i, j = (part[start : start + _CHUNK] for part in self._drawn)
                yield i, j, np.full(len(i), 1 / len(self._drawn[0]))
            return
        height = max(1, _CHUNK // len(self._q))
        for start in range(0, len(self._p), height):
            rows = np.arange(start, min(start + height, len(self._p)))
            i = np.repeat(rows, len(self._q))
            j = np.tile(np.arange(len(self._q)), len(rows))
            yield i, j, self._p[i] * self._q[j]


class PairObjective(Objective):
    """AVFKAM eq. (2) on the drawn features: the mean loss over pairs, plus λ/2 ‖f‖².

    ``positive`` (rows,) are booleans. Rows of weight zero are in no pair. If the loss needs
    its pairs listed and there are more than ``most_pairs``, so many are drawn by ``seed``.
    """

    def __init__(
        self,
        positive: Array,
        weights: Array,
        loss: PairLoss,
        penalty: float,
        *,
        seed: int = 0,
        most_pairs: int = MOST_PAIRS,
    ) -> None:
        self.penalty = penalty
        self._bend = float(loss.bend(np.zeros(1))[0])
        self._ups = np.flatnonzero(positive & (weights > 0))
        self._downs = np.flatnonzero(~positive & (weights > 0))
        p, q = (weights[rows] / weights[rows].sum() for rows in (self._ups, self._downs))
        self._shares = np.zeros(len(weights))
        self._shares[self._ups], self._shares[self._downs] = p, q
        self._sums: PairSums
        if loss.name == "square":
            self._sums = SquareSums(p, q)
        elif loss.name == "squared_hinge":
            self._sums = HingeSums(p, q)
        else:
            self._sums = ListedSums(loss, p, q, seed, most_pairs)

    @property
    def said(self) -> str:
        """A few words that say which pairs are summed."""
        return self._sums.said

    def start(self) -> Array:
        return np.zeros((len(self._shares), 1))

    def value(self, f: Array) -> Array:
        return np.array([self._sums.value(*self._cut(f))])

    def residuals(self, f: Array) -> Array:
        values = np.zeros_like(f)
        values[self._ups, 0], values[self._downs, 0] = self._sums.gradient(*self._cut(f))
        return values

    def along(self, f: Array, direction: Array) -> tuple[Array, Array]:
        first = column_products(self.residuals(f), direction)
        return first, np.array([self._sums.bend(*self._cut(f), *self._cut(direction))])

    def shares(self) -> Array:
        """Each class counts as one: Σ(φ_i − φ_j)(φ_i − φ_j)ᵀ is about Σφ_iφ_iᵀ + Σφ_jφ_jᵀ."""
        return self._shares

    def stiffness(self) -> float:
        return self._bend

    def _cut(self, f: Array) -> tuple[Array, Array]:
        return f[self._ups, 0], f[self._downs, 0]


def _centred(u: Array, v: Array) -> tuple[Array, Array]:
    """Only differences count; numbers near zero lose nothing to rounding in sums of squares."""
    middle = (u.mean() + v.mean()) / 2
    return u - middle, v - middle


def _tails(terms: Array) -> Array:
    """Sums from each place to the end, and 0 beyond it."""
    return np.append(np.cumsum(terms[::-1])[::-1], 0.0)


def _heads(terms: Array) -> Array:
    """Sums before each place, and of all."""
    return np.concatenate(((0.0,), np.cumsum(terms)))


def _choose(generator: np.random.Generator, shares: Array, count: int) -> Array:
    """Row numbers, each as often as its share says."""
    edges = np.cumsum(shares)
    found = np.searchsorted(edges, generator.random(count) * edges[-1], side="right")
    return np.asarray(np.minimum(found, len(shares) - 1))
