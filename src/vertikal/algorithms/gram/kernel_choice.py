"""Kernels that the label party makes of inner products, by name, with their numbers."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy.typing as npt

from vertikal.algorithms.gram.secgram import Gram
from vertikal.kernels import dot_product
from vertikal.kernels.bandwidth import sample_pairs, weighted_median
from vertikal.parameters import Count, Number, Parameters, Positive

Array = npt.NDArray[Any]

KernelName = Literal["rbf", "linear", "polynomial", "dot_product", "conjunctive", "disjunctive"]
BOOLEAN = ("conjunctive", "disjunctive")


class KernelChoice(Parameters, frozen=True, kw_only=True):
    """A kernel with its numbers, applied to inner products of ``variables`` columns."""

    kernel: KernelName = "rbf"
    gamma: Positive | Literal["median"] = "median"
    degree: Count = 3
    coef0: Number = 1.0
    coefficients: tuple[Number, ...] = (0.0, 1.0, 1.0)
    variables: Count = 1

    def fixed(self, gram: Gram, weights: Array, seed: int) -> KernelChoice:
        """The same with γ as a number: "median" is found on these rows, for "rbf", and else 1.

        ``gram`` is square, of the rows that ``weights`` are of.
        """
        gamma = self.gamma
        if gamma == "median":
            gamma = _median_gamma(gram, weights, seed) if self.kernel == "rbf" else 1.0
        return msgspec.structs.replace(self, gamma=gamma, variables=gram.columns)

    def __call__(self, gram: Gram) -> Array:
        values = gram.values
        assert self.gamma != "median"
        if self.kernel == "rbf":
            return dot_product.rbf(values, gram.left, gram.right, self.gamma)
        if self.kernel == "polynomial":
            return dot_product.polynomial(values, self.degree, self.gamma, self.coef0)
        if self.kernel == "dot_product":
            return dot_product.dot_product_polynomial(values, self.coefficients)
        if self.kernel == "conjunctive":
            return dot_product.conjunctive(values, self.degree)
        if self.kernel == "disjunctive":
            left, right = gram.left, gram.right
            return dot_product.disjunctive(values, left, right, self.variables, self.degree)
        return values


def _median_gamma(gram: Gram, weights: Array, seed: int) -> float:
    """γ = 1 / the median squared distance of a sample of pairs of rows."""
    pairs = sample_pairs(len(gram.left), seed)
    first, second = pairs.T
    distances = gram.left[first] + gram.left[second] - 2 * gram.values[first, second]
    # Copies of a row are at distance zero up to the rounding of the sum.
    distances[distances <= 4 * gram.fixed_point.error] = 0.0
    return 1.0 / weighted_median(distances, weights[pairs].prod(axis=1))
