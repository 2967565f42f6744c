"""SecureKernelSVC and SecureKernelRidge: kernel machines on the exact secure kernel matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC
from sklearn.utils.multiclass import check_classification_targets

from vertikal.errors import InputError
from vertikal.estimators.secure_kernel import SecureKernelEstimator
from vertikal.party.clock import Observer

Array = npt.NDArray[Any]


class SecureKernelSVC(ClassifierMixin, SecureKernelEstimator):
    """A support vector classifier on the exact kernel matrix of all parties' columns (SecGram).

    All parties are simulated in this process. They sum their inner products of all pairs of rows
    securely; the label party learns the linear kernel matrix, makes its kernel of it, and fits
    scikit-learn's `SVC`. Predictions need inner products of new rows with the support vectors,
    which the parties sum in the same way. For n rows n²/2 numbers travel per party: with more than
    a few ten thousand rows take `FDSKLClassifier`.

    Parameters
    ----------
    parties : mapping of names to columns, or a number of parties, default 2
    label_party : name, default: the first party
        Who holds the labels and learns the kernel matrix.
    kernel : "rbf", "linear", "polynomial", "dot_product", "conjunctive" or "disjunctive"
        The last two are for columns of zeros and ones.
    gamma : number or "median"
        γ of exp(−γ‖x−z‖²) and (γ⟨x,z⟩ + constant)^degree. "median" is one over the median squared
        distance for "rbf", and 1 otherwise.
    degree, constant : of "polynomial" and, degree only, of the boolean kernels
    coefficients : a_0, a_1, … of "dot_product", Σ a_d ⟨x,z⟩^d
    C, class_weight, tol, max_iter : as in `SVC`
    scale : None, "standard", "minmax" or "max"
        Each party's own scaling of its columns.
    ring_bits : "auto", 16, 32 or 64
        "auto" is the smallest ring that holds whole numbers, and 32 for others.
    masking, timeout, random_state, verbose : as in `FDSKLClassifier`

    Attributes
    ----------
    classes_, support_, svc_ : the fitted `SVC` and what it found
    fixed_point_ : ring, fraction bits and the bound on the error of a kernel entry
    kernel_, ledger_, report_, shards_, columns_, settings_

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vertikal import SecureKernelSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SecureKernelSVC(parties=3, scale="standard").fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        parties: int | Mapping[str, Any] = 2,
        *,
        label_party: str | None = None,
        kernel: str = "rbf",
        gamma: float | Literal["median"] = "median",
        degree: int = 3,
        constant: float = 1.0,
        coefficients: Sequence[float] = (0.0, 1.0, 1.0),
        C: float = 1.0,
        class_weight: Mapping[Any, float] | str | None = None,
        scale: str | None = None,
        ring_bits: int | Literal["auto"] = "auto",
        masking: str = "pads",
        tol: float = 1e-3,
        max_iter: int = -1,
        timeout: float = 300.0,
        random_state: Any = None,
        verbose: int | bool | Observer = 0,
    ) -> None:
        self.parties = parties
        self.label_party = label_party
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.constant = constant
        self.coefficients = coefficients
        self.C = C
        self.class_weight = class_weight
        self.scale = scale
        self.ring_bits = ring_bits
        self.masking = masking
        self.tol = tol
        self.max_iter = max_iter
        self.timeout = timeout
        self.random_state = random_state
        self.verbose = verbose

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


class SecureKernelRidge(RegressorMixin, SecureKernelEstimator):
    """Kernel ridge regression on the exact kernel matrix of all parties' columns (SecGram).

    Parameters and attributes are those of `SecureKernelSVC`, with ``alpha`` (α of scikit-learn's
    `KernelRidge`) in place of C. The mean of the targets is taken off before and added again.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from vertikal import SecureKernelRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SecureKernelRidge(parties=2, scale="standard", alpha=1.0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    _regression = True

    def __init__(
        self,
        parties: int | Mapping[str, Any] = 2,
        *,
        label_party: str | None = None,
        kernel: str = "rbf",
        gamma: float | Literal["median"] = "median",
        degree: int = 3,
        constant: float = 1.0,
        coefficients: Sequence[float] = (0.0, 1.0, 1.0),
        alpha: float = 1.0,
        scale: str | None = None,
        ring_bits: int | Literal["auto"] = "auto",
        masking: str = "pads",
        timeout: float = 300.0,
        random_state: Any = None,
        verbose: int | bool | Observer = 0,
    ) -> None:
        self.parties = parties
        self.label_party = label_party
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.constant = constant
        self.coefficients = coefficients
        self.alpha = alpha
        self.scale = scale
        self.ring_bits = ring_bits
        self.masking = masking
        self.timeout = timeout
        self.random_state = random_state
        self.verbose = verbose

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
