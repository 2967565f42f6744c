"""Residuals of losses whose slope is linear in f, which a sealed fit can compute on shares.

A residual map turns shares of f (rows, outputs), with `VALUE_BITS` fraction bits, into shares of
the residuals r, half the slopes of n times the loss. Labels and weights enter as factors and
summands that only the label party knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError
from vertikal.party.party import Labels
from vertikal.ring.integers import Ring
from vertikal.secure.sealed.sealed_features import SealedFeatures
from vertikal.solvers.sealed_steps import FACTOR_BITS, ROOM, VALUE_BITS, SealedSteps

Array = npt.NDArray[Any]

_MEAN_BITS = 30


class ResidualMap(ABC):
    """Residuals of one loss; every role makes one, the label party with its labels."""

    curvature: ClassVar[float]
    """κ of `sealed_steps`: the Hessian is at most κ times a mean of ‖φ‖², plus the penalty."""

    def __init__(self, rows: int, outputs: int, labels: Labels | None) -> None:
        self.rows, self.outputs, self._labels = rows, outputs, labels

    @property
    @abstractmethod
    def factors(self) -> int:
        """Number of columns of the label party's factors."""

    @abstractmethod
    def own_factors(self, labels: Labels) -> Array:
        """Compute the factors (rows, columns), real numbers of mean 1 or so."""

    @abstractmethod
    def residuals(self, sealed: SealedFeatures, values: Array, steps: SealedSteps) -> Array:
        """Compute shares of r (rows, outputs), with ``residual_bits``, from shares of f."""

    def begin(self, sealed: SealedFeatures, steps: SealedSteps) -> None:
        """Give the label party's factors to the roles, masked."""
        encoded = None
        if self._labels is not None:
            factors = self.own_factors(self._labels)
            largest = np.abs(factors).max() * (steps.most_value + self._largest(self._labels))
            if not largest < 2.0 ** (ROOM - VALUE_BITS - FACTOR_BITS):
                raise InputError.of(
                    "sample_weight and targets",
                    "less unequal with disclosure='sealed', so that a row's weight fits the ring",
                    f"{np.abs(factors).max():.3g} times the average",
                )
            encoded = Ring(64).encode_reals(factors, FACTOR_BITS, 1)
        sealed.hold(encoded)

    def _largest(self, labels: Labels) -> float:
        return float(np.abs(labels.targets).max())

    def _weighed(self, sealed: SealedFeatures, values: Array, bits: int) -> Array:
        """Multiply values by factors (rows, factors), and bring them to ``bits`` fraction bits."""
        return sealed.drop(sealed.scale(values), VALUE_BITS + FACTOR_BITS - bits)


class SquareResiduals(ResidualMap):
    """(1/n) Σ ω_i (f_i − y_i)²: r_i = ω_i (f_i − y_i). Targets are centred already."""

    curvature = 2.0

    @property
    def factors(self) -> int:
        return self.outputs

    def own_factors(self, labels: Labels) -> Array:
        weights = labels.weights / labels.weights.mean()
        return np.repeat(weights[:, None], self.outputs, axis=1)

    def residuals(self, sealed: SealedFeatures, values: Array, steps: SealedSteps) -> Array:
        if self._labels is not None:
            values = values - Ring(64).encode_reals(self._labels.targets, VALUE_BITS, 1)
        return self._weighed(sealed, values, steps.residual_bits)


class PairwiseSquareResiduals(ResidualMap):
    """The mean of (1 − f_i + f_j)² over pairs of a positive row i and a negative row j.

    With m₊ and m₋ the means of f over the positive and over the negative rows,

        r_i = (n/n₊)(f_i − m₋ − 1) for positive i,    r_j = (n/n₋)(f_j − m₊ + 1) for negative j,

    so that the pairs need never be looked at one by one. The label party's factors are n/n₊ on the
    positive rows in one column, n/n₋ on the negative rows in another. (a − b)² ≤ 2a² + 2b² gives κ.
    """

    curvature = 8.0

    @property
    def factors(self) -> int:
        return 2

    def own_factors(self, labels: Labels) -> Array:
        positive = labels.targets[:, 0] > 0
        if positive.all() or not positive.any():
            raise InputError.of("labels", "of two classes for a pairwise loss", "one class")
        return np.stack(
            [side * (self.rows / np.count_nonzero(side)) for side in (positive, ~positive)], axis=1
        )

    def residuals(self, sealed: SealedFeatures, values: Array, steps: SealedSteps) -> Array:
        both = np.repeat(values, 2, axis=1)  # (rows, 2): f for the positive and the negative rows
        sums = self._weighed(sealed, both, VALUE_BITS).sum(axis=0, keepdims=True, dtype=np.uint64)
        share = sums * np.uint64(round(2**_MEAN_BITS / self.rows))
        means = sealed.drop(share, _MEAN_BITS)  # (1, 2): m₊, m₋
        apart = both - means[:, ::-1]
        if self._labels is not None:
            apart -= Ring(64).encode_reals(np.array([[1.0, -1.0]]), VALUE_BITS, 1)
        weighed = sealed.scale(apart).sum(axis=1, keepdims=True, dtype=np.uint64)
        return sealed.drop(weighed, VALUE_BITS + FACTOR_BITS - steps.residual_bits)
