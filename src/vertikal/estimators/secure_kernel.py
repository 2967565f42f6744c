"""SecureKernelSVC and SecureKernelRidge: kernel machines on the exact secure kernel matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from vertikal.algorithms.gram.kernel_choice import BOOLEAN, KernelChoice, KernelName
from vertikal.algorithms.gram.secgram import Gram, GramSettings, cross_gram, gram_matrix
from vertikal.data.scaling import Scale
from vertikal.errors import InputError
from vertikal.estimators.base import FederatedEstimator
from vertikal.parameters import build
from vertikal.party.party import digest

Array = npt.NDArray[Any]


@dataclass(eq=False, repr=False, kw_only=True)
class SecureKernelEstimator(FederatedEstimator):
    """The base of `SecureKernelSVC` and `SecureKernelRidge`; see there.

    Defaults are those of `KernelChoice` and `GramSettings`.
    """

    scale: Scale | None = None
    kernel: KernelName = "rbf"
    gamma: float | Literal["median"] = "median"
    degree: int = 3
    coef0: float = 1.0
    coefficients: Sequence[float] = (0.0, 1.0, 1.0)
    ring_bits: Literal["auto", 16, 32, 64] = "auto"

    _settings_type = GramSettings

    def _kernel_matrix(self, X: Any, weights: Array) -> tuple[Array, Gram]:
        """All parties compute the linear kernel; the label party makes its kernel of it."""
        assigned = self._assigned()
        tables = self._tables(X, assigned)
        base, seed = self._randomness()
        names = ("kernel", "gamma", "degree", "coef0", "coefficients")
        choice = build(KernelChoice, {name: getattr(self, name) for name in names}, "kernel")
        binary = choice.kernel in BOOLEAN
        if binary and self.scale is not None:
            raise InputError.of("scale", "None for a boolean kernel", self.scale)
        settings = self._settings(GramSettings, tuple(tables), binary=binary)
        outcome = self._run(
            tables,
            settings.label_parties,
            digest(settings),
            None,
            base,
            lambda party: gram_matrix(party, settings),
        )
        self.settings_ = settings
        self.columns_ = assigned
        self.shards_ = {name: result[0] for name, result in outcome.results.items()}
        gram = outcome.results[settings.label_parties[0]][1]
        self.fixed_point_ = gram.fixed_point
        self.kernel_ = choice.fixed(gram, weights, seed)
        self.ledger_, self.report_ = outcome.ledger, outcome.report
        return self.kernel_(gram), gram

    def _cross_kernel(self, X: Any, support: Array) -> Array:
        """The kernel of new rows with some training rows, by the parties together."""
        check_is_fitted(self)
        (leader,) = self.settings_.label_parties
        results = self._run_joint(
            X,
            self.columns_,
            self.settings_.label_parties,
            digest(self.settings_),
            lambda party: cross_gram(
                party,
                self.shards_[party.name],
                self.settings_,
                support if party.name == leader else None,
            ),
        )
        return self.kernel_(results[leader])


@dataclass(eq=False, repr=False, kw_only=True)
class SecureKernelSVC(ClassifierMixin, SecureKernelEstimator):
    """A support vector classifier on the exact kernel matrix of all parties' columns (SecGram).

    All parties are simulated in this process. They sum their inner products of all pairs of rows
    securely; the label party learns the linear kernel matrix, makes its kernel of it, and fits
    scikit-learn's `SVC`. Predictions need inner products of new rows with the support vectors,
    which the parties sum in the same way. For n rows n²/2 numbers travel per party: with more than
    a few ten thousand rows take `FDSKLClassifier`.

    Parameters
    ----------
    parties : mapping of names to columns, a number of parties, or a function, default 2
        Columns by name (data frames) or number. A number cuts the columns into runs.
    label_parties : name, default: the first party
        The one party that holds the labels and learns the kernel matrix.
    kernel : "rbf", "linear", "polynomial", "dot_product", "conjunctive" or "disjunctive"
        The last two are for columns of zeros and ones.
    gamma : number or "median"
        γ of exp(−γ‖x−z‖²) and (γ⟨x,z⟩ + coef0)^degree. "median" is one over the median squared
        distance for "rbf", and 1 otherwise.
    degree, coef0 : of "polynomial" and, degree only, of the boolean kernels
    coefficients : a_0, a_1, … of "dot_product", Σ a_d ⟨x,z⟩^d
    C, class_weight, tol, max_iter : as in `SVC`
    missing : "refuse", "mean" or "indicator"
        Missing cells, and text in data frames, as for `FDSKLClassifier`.
    scale : None, "standard", "minmax" or "max"
        Each party's own scaling of its columns.
    ring_bits : "auto", 16, 32 or 64
        "auto" is the smallest ring that holds whole numbers, and 32 for others.
    masking, timeout, random_state, verbose : as in `FDSKLClassifier`

    Attributes
    ----------
    classes_, support_, svc_ : the fitted `SVC` and what it found
    fixed_point_ : ring, fraction bits and the bound on the error of a kernel entry
    kernel_ : the kernel with its numbers
    ledger_, report_, shards_, columns_, settings_, n_iter_

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vertikal import SecureKernelSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SecureKernelSVC(parties=3, scale="standard").fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    C: float = 1.0
    class_weight: Mapping[Any, float] | str | None = None
    tol: float = 1e-3
    max_iter: int = -1

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X (rows, columns) and labels y."""
        X, y = self._validate(X, y, reset=True)
        check_classification_targets(y)
        weights = self._weights(sample_weight, X)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise InputError(
                f"y must hold at least two classes, got one class: {self.classes_.tolist()[0]!r}"
            )
        matrix, _ = self._kernel_matrix(X, weights)
        # A row of weight zero is as if it were not there.
        self._used = np.flatnonzero(weights)
        self.svc_ = SVC(
            C=self.C,
            kernel="precomputed",
            class_weight=self.class_weight,
            tol=self.tol,
            max_iter=self.max_iter,
            break_ties=False,
        ).fit(
            matrix[np.ix_(self._used, self._used)],
            y[self._used],
            sample_weight=None if sample_weight is None else weights[self._used],
        )
        self.support_ = self._used[self.svc_.support_]
        self.n_iter_ = int(np.max(self.svc_.n_iter_))
        return self

    def decision_function(self, X: Any) -> Array:
        """As `SVC.decision_function`: (rows,) for two classes, else (rows, classes)."""
        columns = self._columns(X)
        return np.asarray(self.svc_.decision_function(columns))

    def predict(self, X: Any) -> Array:
        """The class of each row."""
        columns = self._columns(X)
        return np.asarray(self.svc_.predict(columns))

    def _columns(self, X: Any) -> Array:
        """The kernel of X with all training rows; only those of the support vectors are needed."""
        cross = self._cross_kernel(X, getattr(self, "support_", np.empty(0, np.int64)))
        whole = np.zeros((len(cross), len(self._used)))
        whole[:, self.svc_.support_] = cross
        return whole


@dataclass(eq=False, repr=False, kw_only=True)
class SecureKernelRidge(RegressorMixin, SecureKernelEstimator):
    """Kernel ridge regression on the exact kernel matrix of all parties' columns (SecGram).

    The mean of the targets is taken off before and added again.

    Parameters
    ----------
    parties, label_parties, kernel, gamma, degree, coef0, coefficients, scale, ring_bits, masking
        As those of `SecureKernelSVC`.
    missing, timeout, random_state, verbose
        As those of `SecureKernelSVC`.
    alpha : number
        As in scikit-learn's `KernelRidge`.

    Attributes
    ----------
    support_, dual_coef_, mean_ : training rows of positive weight, their coefficients, the mean
    fixed_point_, kernel_, ledger_, report_, shards_, columns_, settings_
        As those of `SecureKernelSVC`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from vertikal import SecureKernelRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SecureKernelRidge(parties=2, scale="standard", alpha=1.0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    alpha: float = 1.0

    _regression: ClassVar[bool] = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X (rows, columns) and targets y."""
        X, y = self._validate(X, y, reset=True)
        weights = self._weights(sample_weight, X)
        matrix, _ = self._kernel_matrix(X, weights)
        self.mean_ = float(np.average(y, weights=weights))
        # A row of weight zero is as if it were not there.
        used = np.flatnonzero(weights)
        ridge = KernelRidge(alpha=self.alpha, kernel="precomputed").fit(
            matrix[np.ix_(used, used)],
            np.asarray(y, np.float64)[used] - self.mean_,
            sample_weight=None if sample_weight is None else weights[used],
        )
        self.support_, self.dual_coef_ = used, np.asarray(ridge.dual_coef_)
        return self

    def predict(self, X: Any) -> Array:
        """The target of each row."""
        cross = self._cross_kernel(X, getattr(self, "support_", np.empty(0, np.int64)))
        return np.asarray(cross @ self.dual_coef_ + self.mean_)
