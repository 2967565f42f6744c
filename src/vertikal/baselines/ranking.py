"""RankSVM on approximate kernels, and a sparse kernel machine for the AUC, in one place.

RankSVM with kernel approximation (Chen et al. 2017) minimises the squared hinge over all pairs of a
positive and a negative row on random Fourier or Nyström features. The published code writes the
pairs down; sums over sorted predictions give the same (`solvers.pair_objective`).

The sparse machine (Kakkar et al. 2017) is a sum of few kernel functions at training rows. Its code
is not public, and its paper gives no listing: here rows are added greedily, each the one whose
function the gradient of the loss points at most, and all coefficients are solved for again.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from vertikal.compute.matrix_operator import MatrixOperator
from vertikal.errors import InputError
from vertikal.losses.pairwise import pair_loss_named
from vertikal.solvers.lbfgs import Solution, solve
from vertikal.solvers.pair_objective import PairObjective

Array = npt.NDArray[Any]


@dataclass(eq=False, repr=False, kw_only=True)
class RankingClassifier(ClassifierMixin, BaseEstimator):
    """Base of `RankSVMClassifier` and `SparseKernelAUCClassifier`; f ranks the rows."""

    gamma: float = 0.02
    alpha: float = 1e-4
    tol: float = 1e-4
    max_iter: int = 200
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows X (rows, columns) and labels y of two classes."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise InputError.of("y", "of two classes", f"{len(self.classes_)} classes")
        self._learn(X, numbers == 1)
        return self

    def decision_function(self, X: Any) -> Array:
        """f of each row (rows,): the higher, the more likely of the second class."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(self._features(X) @ self.coefficients_[:, 0])

    def predict(self, X: Any) -> Array:
        """The class of each row; as many training rows are of the second one as in y."""
        return np.asarray(self.classes_[(self.decision_function(X) > self.cut_).astype(int)])

    @abstractmethod
    def _learn(self, X: Any, positive: Array) -> None:
        """Learn features and coefficients."""

    @abstractmethod
    def _features(self, X: Any) -> Array:
        """Return the features of rows (rows, width)."""

    def _solve(self, features: Array, positive: Array) -> Solution:
        """Minimise the mean squared hinge over all pairs, plus λ/2 ‖w‖²."""
        loss = pair_loss_named("squared_hinge")
        objective = PairObjective(positive, np.ones(len(positive)), loss, self.alpha)
        solution = solve(
            MatrixOperator(features),
            objective,
            tolerance=self.tol,
            max_iterations=self.max_iter,
        )
        self.coefficients_ = solution.coefficients
        self.objective_ = solution.objective[-1]
        self.cut_ = float(np.quantile(solution.predictions[:, 0], 1 - positive.mean()))
        return solution


@dataclass(eq=False, repr=False, kw_only=True)
class RankSVMClassifier(RankingClassifier):
    """RankSVM on ``n_components`` features of the Gaussian kernel exp(−γ‖x − x'‖²).

    Parameters
    ----------
    approximation : "fourier" or "nystroem"
    gamma, n_components : γ, and the number of features
    alpha : λ of the mean over pairs plus λ/2 ‖w‖²; the published C is 1/(λ · pairs) here
    """

    approximation: Literal["fourier", "nystroem"] = "fourier"
    n_components: int = 500

    def _learn(self, X: Any, positive: Array) -> None:
        kinds = {"fourier": RBFSampler, "nystroem": Nystroem}
        if self.approximation not in kinds:
            raise InputError.of("approximation", f"one of {list(kinds)}", self.approximation)
        size = self.n_components
        if self.approximation == "nystroem":
            size = min(size, X.shape[0])
        self.sampler_ = kinds[self.approximation](
            gamma=self.gamma, n_components=size, random_state=self.random_state
        ).fit(X)
        self._solve(self._features(X), positive)

    def _features(self, X: Any) -> Array:
        return np.asarray(self.sampler_.transform(X))


@dataclass(eq=False, repr=False, kw_only=True)
class SparseKernelAUCClassifier(RankingClassifier):
    """A sum of ``n_basis`` kernel functions at training rows, chosen greedily for the AUC.

    Parameters
    ----------
    gamma, alpha : as those of `RankSVMClassifier`
    n_basis, candidates : int
        Kernel functions, and rows drawn at random of which each is the best.
    """

    n_basis: int = 40
    candidates: int = 60

    def _learn(self, X: Any, positive: Array) -> None:
        generator = check_random_state(self.random_state)
        self.basis_ = X[:0]
        chosen: list[int] = []
        residuals = PairObjective(
            positive, np.ones(len(positive)), pair_loss_named("squared_hinge"), self.alpha
        ).residuals
        f = np.zeros((len(positive), 1))
        for _ in range(min(self.n_basis, X.shape[0])):
            free = np.setdiff1d(np.arange(X.shape[0]), chosen)
            some = generator.choice(free, min(self.candidates, len(free)), replace=False)
            columns = rbf_kernel(X, X[some], gamma=self.gamma)
            gains = np.abs(residuals(f)[:, 0] @ columns) / np.linalg.norm(columns, axis=0)
            chosen.append(int(some[np.argmax(gains)]))
            self.basis_ = X[np.array(chosen)]
            f = self._solve(self._features(X), positive).predictions
        self.support_ = np.array(chosen)

    def _features(self, X: Any) -> Array:
        return np.asarray(rbf_kernel(X, self.basis_, gamma=self.gamma))
