"""ADMMClassifier and ADMMRegressor: linear and additive models by ADMM sharing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from vertikal.estimators.classes import FederatedClassifier
from vertikal.estimators.sharing import SharingEstimator
from vertikal.party.clock import Observer

Array = npt.NDArray[Any]


class ADMMClassifier(FederatedClassifier, SharingEstimator):
    """A linear classifier over columns of several parties, each sharing one number per row.

    f(x) = Σ_m d_m(x)ᵀx_m + b: a part per party, found by ADMM sharing with secure sums; optionally
    with differential privacy for each party's rows. With ``kernel="gaussian"`` every party first
    draws random features of its own columns, and f is a sum of one kernel machine per party.

    Parameters
    ----------
    parties : mapping of names to columns, or a number of parties, default 2
    label_party : name, default: the first party
        Who holds the labels; it is also the central node.
    loss : "logistic", "square", "smooth_hinge" or "sigmoid" (smooth, not convex)
    regulariser : "l2", "l1" or "elastic_net" (with ``l1_ratio``)
    alpha : number or "auto"
        λ of (1/n) Σ L + λR. "auto" is 0.1/n.
    rho : number or "auto"
        ρ, the weight of the augmented term.
    averaging : bool
        True is the averaged form, which converges for every ρ if the loss is convex; False the
        parallel form as published, which needs a large enough ρ.
    fit_intercept : bool
        A constant at the label party, not penalised (with privacy: penalised, and part of its row).
    kernel : None or "gaussian"; bandwidth, n_components
        Each party's own random features; "median" is the median distance in its own columns.
    scale : None, "standard", "minmax" or "max"
        Each party's own scaling of its columns, kept in its shard; no noise protects it.
    privacy : None, or a mapping
        "epsilon" and "delta": the total that each party spends in ``max_iter`` rounds, for any
        one of its rows. "bound": the largest length of x_m (default 4). "mechanism": "row", or
        "paper" to reproduce the published noise, which protects nothing. Labels and weights are
        not covered: every party learns them.
    budget_files : None, or a mapping of parties to paths
        Each owner's file (`vertikal.privacy.budget.BudgetFile`); a job beyond it is refused there.
    masking : "pads", "trees" or None
        None sends each party's numbers in the clear, as the paper does.
    tol, max_iter
        When training stops; with privacy it runs all rounds, which is when the budget is spent.
        "auto" is 200 rounds, and with privacy one: its noise grows with the root of their number.
    timeout, random_state, verbose, class_weight
        As those of `FDSKLClassifier`. Noise is always fresh, whatever ``random_state`` is.

    Attributes
    ----------
    classes_ : the class labels
    rounds_ : per round the primal and dual residual, V (one round later) and the objective
    privacy_spent_ : by party and round, (ε, δ) so far: tight, and by the paper's composition
    assumptions_ : by party, which items of the convergence proof's assumption hold
    report_ : seconds and bytes; with privacy also what each release has cost
    ledger_, shards_, alpha_, rho_, n_iter_, objective_, columns_, settings_

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vertikal import ADMMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ADMMClassifier(parties=3, scale="standard", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        parties: int | Mapping[str, Any] = 2,
        *,
        label_party: str | None = None,
        loss: str = "logistic",
        regulariser: str = "l2",
        l1_ratio: float = 0.5,
        alpha: float | Literal["auto"] = "auto",
        rho: float | Literal["auto"] = "auto",
        averaging: bool = True,
        fit_intercept: bool = True,
        kernel: str | None = None,
        bandwidth: float | Literal["median"] = "median",
        n_components: int = 512,
        scale: str | None = None,
        privacy: Mapping[str, Any] | None = None,
        budget_files: Mapping[str, Any] | None = None,
        masking: str | None = "pads",
        tol: float = 1e-3,
        max_iter: int | Literal["auto"] = "auto",
        timeout: float = 300.0,
        random_state: Any = None,
        verbose: int | bool | Observer = 0,
        class_weight: Mapping[Any, float] | str | None = None,
    ) -> None:
        super().__init__(
            parties,
            label_party=label_party,
            loss=loss,
            regulariser=regulariser,
            l1_ratio=l1_ratio,
            alpha=alpha,
            rho=rho,
            averaging=averaging,
            fit_intercept=fit_intercept,
            kernel=kernel,
            bandwidth=bandwidth,
            n_components=n_components,
            scale=scale,
            privacy=privacy,
            budget_files=budget_files,
            masking=masking,
            tol=tol,
            max_iter=max_iter,
            timeout=timeout,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight


class ADMMRegressor(RegressorMixin, SharingEstimator):
    """Linear or additive regression over columns of several parties, by ADMM sharing.

    Parameters and attributes are those of `ADMMClassifier`, without classes; the loss is "square".
    The label party standardises the targets, and predictions come back in their own unit.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from vertikal import ADMMRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ADMMRegressor(parties=2, scale="standard", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    _regression = True

    def __init__(
        self,
        parties: int | Mapping[str, Any] = 2,
        *,
        label_party: str | None = None,
        loss: str = "square",
        regulariser: str = "l2",
        l1_ratio: float = 0.5,
        alpha: float | Literal["auto"] = "auto",
        rho: float | Literal["auto"] = "auto",
        averaging: bool = True,
        fit_intercept: bool = True,
        kernel: str | None = None,
        bandwidth: float | Literal["median"] = "median",
        n_components: int = 512,
        scale: str | None = None,
        privacy: Mapping[str, Any] | None = None,
        budget_files: Mapping[str, Any] | None = None,
        masking: str | None = "pads",
        tol: float = 1e-3,
        max_iter: int | Literal["auto"] = "auto",
        timeout: float = 300.0,
        random_state: Any = None,
        verbose: int | bool | Observer = 0,
    ) -> None:
        super().__init__(
            parties,
            label_party=label_party,
            loss=loss,
            regulariser=regulariser,
            l1_ratio=l1_ratio,
            alpha=alpha,
            rho=rho,
            averaging=averaging,
            fit_intercept=fit_intercept,
            kernel=kernel,
            bandwidth=bandwidth,
            n_components=n_components,
            scale=scale,
            privacy=privacy,
            budget_files=budget_files,
            masking=masking,
            tol=tol,
            max_iter=max_iter,
            timeout=timeout,
            random_state=random_state,
            verbose=verbose,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X (rows, columns) and targets y."""
        X, y = self._validate(X, y, reset=True)
        self._fit(X, y, self._weights(sample_weight, X), np.asarray(y, np.float64)[:, None])
        return self

    def predict(self, X: Any) -> Array:
        """The target of each row."""
        return self._decide(X)[:, 0]
