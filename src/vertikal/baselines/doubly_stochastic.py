"""DSG and TSAM: doubly and triply stochastic gradients on columns in one place.

DSG (Dai et al. 2014) is FDSKL without a federation: a step draws rows and a block of directions,
gives the block the coefficients −γ_t·L'(f(x), y)·φ(x), and shrinks all others by 1 − γ_t·λ. TSAM
(Dang et al. 2020) draws pairs of a positive and a negative row. Their papers let γ_t fall as θ/t;
FDSKL compares with DSG at a constant step.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from vertikal.baselines.one_against_rest import OneAgainstRest
from vertikal.baselines.pooled_features import CosineMap, Draw, decide, gather
from vertikal.data.scaling import learn_scaling
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.kernels.mean_distance import checked_mean, mean_distance
from vertikal.kernels.spectral import kernel_named
from vertikal.losses.pairwise import pair_loss_named
from vertikal.losses.pointwise import loss_named
from vertikal.parameters import Count, Parameters, Positive, build

Array = npt.NDArray[Any]

Steps = Literal["constant", "1/t"]

KEPT_BYTES = 1 << 30
"""Features of all rows are kept if they take no more than this."""


class StochasticSettings(Parameters, frozen=True, kw_only=True):
    """Parameters of DSG and TSAM, where they mean what they mean to `FDSKLClassifier`."""

    kernel: str = "gaussian"
    bandwidth: Positive | Literal["mean"] = "mean"
    n_components: Count = 2048
    alpha: Positive = 1e-4
    loss: str
    steps: Steps = "constant"
    step_size: Positive = 1.0
    n_steps: Count | None = None
    batch_size: Count = 64
    block_size: Count = 64

    def step(self, number: int) -> float:
        """Return γ of a step, numbered from 0."""
        return self.step_size / (number + 1 if self.steps == "1/t" else 1)


@dataclass(eq=False, repr=False, kw_only=True)
class StochasticKernelClassifier(OneAgainstRest, BaseEstimator):
    """Base of `DSGClassifier` and `TSAMClassifier`; see there."""

    kernel: str = "gaussian"
    bandwidth: float | Literal["mean"] = "mean"
    n_components: int = 2048
    alpha: float = 1e-4
    loss: str = "logistic"
    steps: Steps = "constant"
    step_size: float = 1.0
    n_steps: int | None = None
    batch_size: int = 64
    block_size: int = 64
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows X (rows, columns) and labels y of two classes."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        numbers = self._number_classes(y)
        if len(self.classes_) > 2:
            raise InputError.of("y", "of two classes", f"{len(self.classes_)} classes")
        given = {name: value for name, value in self.get_params().items() if name != "random_state"}
        self.settings_ = build(StochasticSettings, given, "parameters")
        generator = check_random_state(self.random_state)
        self._prepare(self._table(X), generator)
        self.coefficients_ = self._run(self._table(X), np.where(numbers == 1, 1.0, -1.0), generator)
        return self

    @abstractmethod
    def _draw_rows(self, y: Array, generator: Any) -> Array:
        """Draw the row numbers of one step."""

    @abstractmethod
    def _slopes(self, f: Array, y: Array) -> Array:
        """Return the derivative of the batch's mean loss in f (batch,)."""

    def _prepare(self, table: Table, generator: Any) -> None:
        settings, kernel = self.settings_, kernel_named(self.settings_.kernel)
        scaling = learn_scaling(table, None)
        self.bandwidth_ = settings.bandwidth
        if settings.bandwidth == "mean":
            mean = mean_distance(kernel, table.block, table.rows, scaling.arrays()[1])
            self.bandwidth_ = kernel.typical_bandwidth(checked_mean(mean))
        seed = int.from_bytes(generator.bytes(7), "big")
        draw = Draw.of(kernel, table.width, settings.n_components, float(self.bandwidth_), seed)
        self.feature_map_ = CosineMap(draw, scaling)

    def _run(self, table: Table, y: Array, generator: Any) -> Array:
        """Take all steps; return the coefficients (D, 1) of features φ/√D."""
        settings, D = self.settings_, self.settings_.n_components
        blocks = [
            slice(start, min(start + settings.block_size, D))
            for start in range(0, D, settings.block_size)
        ]
        a = np.zeros(D)
        self.n_iter_ = settings.n_steps or len(blocks)
        features_of = self._features_of(table)
        for number in range(self.n_iter_):
            rows = self._draw_rows(y, generator)
            block, step = blocks[number % len(blocks)], settings.step(number)
            features = features_of(rows).astype(np.float64)
            slopes = self._slopes(features @ a, y[rows])
            change = features[:, block].T @ slopes
            a *= 1 - step * settings.alpha
            # One of D/F blocks stands for all.
            a[block] -= step * D / (block.stop - block.start) * change
        return a[:, None]

    def _features_of(self, table: Table) -> Callable[[Array], Array]:
        """Return the features (batch, D) of given rows, computed once if steps draw rows often."""
        settings = self.settings_
        drawn = self.n_iter_ * settings.batch_size
        if table.rows <= drawn and 4 * table.rows * settings.n_components <= KEPT_BYTES:
            kept = gather(self.feature_map_, table).cached
            return lambda rows: kept[rows]
        return lambda rows: self.feature_map_.local(table.block(rows))

    def _decide(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return decide(self.feature_map_, self._table(X), self.coefficients_)

    def _table(self, X: Any) -> Table:
        return Table("pooled", tuple(map(str, range(X.shape[1]))), X)


@dataclass(eq=False, repr=False, kw_only=True)
class DSGClassifier(StochasticKernelClassifier):
    """DSG (Dai et al. 2014): FDSKL's rule on columns in one place, for two classes.

    Parameters
    ----------
    kernel, bandwidth, n_components, alpha, loss, random_state
        As those of `FDSKLClassifier`.
    steps : "constant" or "1/t"
        γ_t = ``step_size`` as FDSKL compares, or ``step_size``/t as DSG's analysis has it.
    n_steps, batch_size, block_size : int
        As those of `Stochastic`; 1 row and 1 direction are the papers' rule.
    """

    def _draw_rows(self, y: Array, generator: Any) -> Array:
        return np.asarray(generator.randint(0, len(y), self.settings_.batch_size))

    def _slopes(self, f: Array, y: Array) -> Array:
        loss = loss_named(self.settings_.loss, regression=False)
        return loss.derivative(f, y) / len(y)


@dataclass(eq=False, repr=False, kw_only=True)
class TSAMClassifier(StochasticKernelClassifier):
    """TSAM (Dang et al. 2020): AVFKAM's rule on columns in one place; f ranks rows.

    Parameters are those of `DSGClassifier`; ``loss`` is a pairwise one and ``batch_size`` counts
    pairs. Classes are cut at zero, which a ranking knows nothing of: use ``decision_function``.
    """

    loss: str = "squared_hinge"

    def _draw_rows(self, y: Array, generator: Any) -> Array:
        pairs = self.settings_.batch_size
        ups, downs = (np.flatnonzero(y == sign) for sign in (1, -1))
        return np.concatenate([generator.choice(rows, pairs) for rows in (ups, downs)])

    def _slopes(self, f: Array, y: Array) -> Array:
        pairs = len(y) // 2
        first, second = pair_loss_named(self.settings_.loss).derivatives(f[:pairs], f[pairs:])
        return np.concatenate((first, second)) / pairs
