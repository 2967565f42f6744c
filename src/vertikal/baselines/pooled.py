"""PooledKernelClassifier: the kernel machine of FDSKL on pooled columns, in one process.

Same kernels, same random features, same exact solver; no parties, no masks and no messages. It
shows what the columns would be worth in one place, and what a federated fit costs on top.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from vertikal.baselines.one_against_rest import OneAgainstRest
from vertikal.baselines.pooled_features import CosineMap, Draw, decide, gather, phase_map
from vertikal.compute.device.choice import DeviceName
from vertikal.compute.threads import one_blas_thread
from vertikal.data.column_checks import check_columns
from vertikal.data.scaling import Scale, Scaling, learn_scaling
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.kernels.bandwidth import pair_distances, sample_pairs, weighted_median
from vertikal.kernels.feature_map import FeatureMap
from vertikal.kernels.mean_distance import checked_mean, mean_distance
from vertikal.kernels.spectral import Kernel, kernel_named
from vertikal.losses.pointwise import loss_named
from vertikal.parameters import Count, Parameters, Positive, build
from vertikal.solvers.lbfgs import sample_rows, solve
from vertikal.solvers.objective import RowObjective, automatic_penalty, best_constants

Array = npt.NDArray[Any]


class PooledSettings(Parameters, frozen=True, kw_only=True):
    """The pooled classifier's parameters, where they mean what they mean to `FDSKLClassifier`."""

    kernel: str = "gaussian"
    bandwidth: Positive | Literal["mean", "median"] = "mean"
    n_components: Count = 2048
    alpha: Positive | Literal["auto"] = "auto"
    loss: str = "logistic"
    scale: Scale | None = None
    features: Literal["phases", "float32"] = "phases"
    ring_bits: Literal[8, 16, 32] = 8
    device: DeviceName = "auto"
    tol: Positive = 1e-3
    max_iter: Count = 200


@dataclass(eq=False, repr=False, kw_only=True)
class PooledKernelClassifier(OneAgainstRest, BaseEstimator):
    """A kernel classifier on columns that lie in one place. Several classes: one against the rest.

    Parameters
    ----------
    kernel, bandwidth, n_components, alpha, loss, scale, device, tol, max_iter, random_state
        As those of `FDSKLClassifier`.
    features : "phases" or "float32"
        "phases" rounds as the federation does, to ``ring_bits``; "float32" keeps plain cosines.
    ring_bits : 8, 16 or 32
        Bits of a phase; not used by "float32".

    Attributes
    ----------
    classes_ : the class labels
    seconds_ : seconds by stage (prepare, bandwidth, features, solve)
    bandwidth_, alpha_, n_iter_, objective_, gradient_

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> PooledKernelClassifier(scale="standard", random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    kernel: str = "gaussian"
    bandwidth: float | Literal["mean", "median"] = "mean"
    n_components: int = 2048
    alpha: float | Literal["auto"] = "auto"
    loss: str = "logistic"
    scale: Scale | None = None
    features: Literal["phases", "float32"] = "phases"
    ring_bits: Literal[8, 16, 32] = 8
    device: DeviceName = "auto"
    tol: float = 1e-3
    max_iter: int = 200
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X (rows, columns) and labels y."""
        options = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
        X, y = validate_data(self, X, y, ensure_all_finite=False, ensure_min_samples=2, **options)
        check_classification_targets(y)
        weights = _weights(sample_weight, X)
        targets = self._targets(self._number_classes(y))
        given = {name: value for name, value in self.get_params().items() if name != "random_state"}
        settings = build(PooledSettings, given, "parameters")
        self._settings = settings
        table = self._table(X)
        check_columns(table, varying=True)
        with one_blas_thread():
            self._train(table, targets, weights)
        if not self._converged and self.n_iter_ == settings.max_iter:
            warnings.warn(
                f"not converged to tolerance {settings.tol:g} in {self.n_iter_} iterations; "
                "raise max_iter, tol or alpha",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _train(self, table: Table, targets: Array, weights: Array) -> None:
        settings = self._settings
        kernel, loss = kernel_named(settings.kernel), loss_named(settings.loss, regression=False)
        seed = self._seed()
        self.seconds_: dict[str, float] = {}
        with self._stage("prepare"):
            scaling = learn_scaling(table, settings.scale)
        with self._stage("bandwidth"):
            self.bandwidth_ = (
                _typical_bandwidth(settings.bandwidth, table, scaling, kernel, weights, seed)
                if isinstance(settings.bandwidth, str)
                else settings.bandwidth
            )
        with self._stage("features"):
            self._scaling = scaling
            self._draw = Draw.of(kernel, table.width, settings.n_components, self.bandwidth_, seed)
            operator = gather(self._map(), table, settings.device)
        with self._stage("solve"):
            self.alpha_ = automatic_penalty(weights) if settings.alpha == "auto" else settings.alpha
            self._constant = best_constants(loss, targets, weights)
            solution = solve(
                operator,
                RowObjective(targets, weights, loss, self.alpha_, self._constant),
                sample=sample_rows(operator.rows, operator.width, seed),
                tolerance=settings.tol,
                max_iterations=settings.max_iter,
            )
        self._coefficients = solution.coefficients
        self._converged = solution.converged
        self.n_iter_ = solution.iterations
        self.objective_ = list(solution.objective)
        self.gradient_ = list(solution.gradient)

    def _decide(self, X: Any) -> Array:
        """f of each row, (rows, outputs)."""
        check_is_fitted(self)
        options = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
        X = validate_data(self, X, ensure_all_finite=False, reset=False, **options)
        table = self._table(X)
        check_columns(table, varying=False)
        with one_blas_thread():
            return decide(self._map(), table, self._coefficients) + self._constant

    def _map(self) -> FeatureMap:
        if self._settings.features == "phases":
            return phase_map(self._draw, self._scaling, self._settings.ring_bits)
        return CosineMap(self._draw, self._scaling)

    def _table(self, X: Any) -> Table:
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        return Table("pooled", tuple(str(name) for name in names), X)

    def _seed(self) -> int:
        if self.random_state is None:
            return int.from_bytes(os.urandom(7), "big")
        return int.from_bytes(check_random_state(self.random_state).bytes(7), "big")

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds_[name] = time.perf_counter() - began


def _typical_bandwidth(
    which: str, table: Table, scaling: Scaling, kernel: Kernel, weights: Array, seed: int
) -> float:
    """Compute σ from the mean or the median distance between rows, as the federation finds it."""
    _, factor = scaling.arrays()
    if which == "mean":
        mean = mean_distance(kernel, table.block, table.rows, factor)
        return kernel.typical_bandwidth(checked_mean(mean))
    pairs = sample_pairs(table.rows, seed)
    distances = pair_distances(kernel, table.block, factor, pairs)
    return kernel.typical_bandwidth(weighted_median(distances, weights[pairs].prod(axis=1)))


def _weights(sample_weight: Any, X: Any) -> Array:
    weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64))
    if (weights < 0).any():
        raise InputError.of("sample_weight", "not negative", float(weights.min()))
    if not weights.any():
        raise InputError.of("sample_weight", "positive for at least one row", "all zero")
    return weights
