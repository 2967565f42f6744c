"""What the estimators on the secure kernel matrix share: parameters, sums, kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from vertikal.algorithms.gram.secgram import Gram, GramSettings, cross_gram, gram_matrix
from vertikal.errors import InputError
from vertikal.estimators.base import FederatedEstimator, plain
from vertikal.estimators.columns import choose_label_parties
from vertikal.kernels import dot_product
from vertikal.kernels.bandwidth import sample_pairs, weighted_median
from vertikal.party.party import digest
from vertikal.party.sums import MASKINGS
from vertikal.secure.keys.prg import derive_key, fresh_key

Array = npt.NDArray[Any]

KERNELS = ("rbf", "linear", "polynomial", "dot_product", "conjunctive", "disjunctive")
BOOLEAN = ("conjunctive", "disjunctive")


@dataclass(frozen=True)
class KernelChoice:
    """A kernel with its numbers, applied to inner products."""

    name: str
    gamma: float
    degree: int
    constant: float
    coefficients: tuple[float, ...]
    variables: int

    def __call__(self, gram: Gram) -> Array:
        values = gram.values
        if self.name == "rbf":
            return dot_product.rbf(values, gram.left, gram.right, self.gamma)
        if self.name == "polynomial":
            return dot_product.polynomial(values, self.degree, self.gamma, self.constant)
        if self.name == "dot_product":
            return dot_product.dot_product_polynomial(values, self.coefficients)
        if self.name == "conjunctive":
            return dot_product.conjunctive(values, self.degree)
        if self.name == "disjunctive":
            left, right = gram.left, gram.right
            return dot_product.disjunctive(values, left, right, self.variables, self.degree)
        return values


class SecureKernelEstimator(FederatedEstimator):
    """The base of `SecureKernelSVC` and `SecureKernelRidge`; see there."""

    settings_: Any  # GramSettings
    shards_: Any  # GramShard by party
    ring_bits: Any

    def _kernel_matrix(self, X: Any, weights: Array) -> tuple[Array, Gram]:
        """All parties compute the linear kernel; the label party makes its kernel of it."""
        assigned = self._assigned()
        tables = self._tables(X, assigned, varying=False)
        base, seed = self._randomness()
        settings = self._gram_settings(tuple(tables))
        secrets = {name: derive_key(base, "party", name) for name in tables}
        outcome = self._simulate(
            tables,
            settings.label_parties,
            digest(settings),
            None,
            secrets,
            lambda party: gram_matrix(party, settings),
        )
        self.settings_ = settings
        self.columns_ = assigned
        self.shards_ = {name: result[0] for name, result in outcome.results.items()}
        gram = outcome.results[settings.label_parties[0]][1]
        variables = sum(len(columns) for columns in assigned.values())
        self.fixed_point_ = gram.fixed_point
        self.kernel_ = self._choose_kernel(gram, weights, seed, variables)
        self.ledger_, self.report_ = outcome.ledger, outcome.report
        return self.kernel_(gram), gram

    def _cross_kernel(self, X: Any, support: Array) -> Array:
        """The kernel of new rows with some training rows, by the parties together."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        tables = self._tables(X, self.columns_, varying=False)
        leader = self.settings_.label_parties[0]
        outcome = self._simulate(
            tables,
            self.settings_.label_parties,
            digest(self.settings_),
            None,
            {name: fresh_key() for name in tables},
            lambda party: cross_gram(
                party,
                self.shards_[party.name],
                self.settings_,
                support if party.name == leader else None,
            ),
        )
        return self.kernel_(outcome.results[leader])

    def _gram_settings(self, parties: tuple[str, ...]) -> GramSettings:
        if self.kernel not in KERNELS:
            raise InputError.of("kernel", f"one of {KERNELS}", self.kernel)
        if self.masking not in MASKINGS:
            raise InputError.of("masking", f"one of {MASKINGS}", self.masking)
        if self.masking == "trees" and len(parties) < 3:
            raise InputError.of(
                "masking", "'pads' for two parties (one tree is all there is)", "trees"
            )
        binary = self.kernel in BOOLEAN
        if binary and self.scale is not None:
            raise InputError.of("scale", "None for a boolean kernel", self.scale)
        return GramSettings(
            parties=parties,
            label_parties=choose_label_parties(self.label_party, parties)[:1],
            ring_bits=plain(self.ring_bits),
            scale=self.scale,
            binary=binary,
        )

    def _choose_kernel(self, gram: Gram, weights: Array, seed: int, variables: int) -> KernelChoice:
        gamma, degree = plain(self.gamma), plain(self.degree)
        if isinstance(degree, bool) or not isinstance(degree, int) or degree < 1:
            raise InputError.of("degree", "a positive whole number", degree)
        if gamma == "median":
            gamma = 1.0
            if self.kernel == "rbf":
                gamma = _median_gamma(gram, weights, seed)
        if isinstance(gamma, bool | str) or not np.isfinite(gamma) or gamma <= 0:
            raise InputError.of("gamma", "a positive number or 'median'", gamma)
        coefficients = tuple(float(a) for a in self.coefficients)
        return KernelChoice(
            self.kernel, float(gamma), degree, float(self.constant), coefficients, variables
        )


def _median_gamma(gram: Gram, weights: Array, seed: int) -> float:
    """γ = 1 / the median squared distance of a sample of pairs of rows."""
    pairs = sample_pairs(len(gram.left), seed)
    first, second = pairs.T
    distances = gram.left[first] + gram.left[second] - 2 * gram.values[first, second]
    # Copies of a row are at distance zero up to the rounding of the sum.
    distances[distances <= 4 * gram.fixed_point.error] = 0.0
    return 1.0 / weighted_median(distances, weights[pairs].prod(axis=1))
