"""ADMMClassifier and ADMMRegressor: linear and additive models by ADMM sharing."""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from vertikal.algorithms.admm.algorithm import ADMM
from vertikal.algorithms.admm.settings import AdmmSettings, Gaussian, Privacy
from vertikal.algorithms.admm.shard import AdmmShard
from vertikal.data.scaling import Scale
from vertikal.errors import InputError
from vertikal.estimators.base import FederatedEstimator, Masking
from vertikal.estimators.simulation import Outcome
from vertikal.estimators.tasks import FederatedClassifier, FederatedRegressor
from vertikal.party.party import Labels, digest
from vertikal.privacy.budget import BudgetFile

Array = npt.NDArray[Any]


@dataclass(eq=False, repr=False, kw_only=True)
class SharingEstimator(FederatedEstimator):
    """The base of `ADMMClassifier` and `ADMMRegressor`; see there.

    Defaults are those of `AdmmSettings`.
    """

    scale: Scale | None = None
    alpha: float | Literal["auto"] = "auto"
    l1_ratio: float = 0.0
    rho: float | Literal["auto"] = "auto"
    averaging: bool = True
    fit_intercept: bool = True
    kernel: Literal["gaussian"] | Gaussian | None = None
    privacy: Privacy | Mapping[str, Any] | None = None
    budget_files: Mapping[str, Any] | None = None
    tol: float = 1e-3
    max_iter: int | Literal["auto"] = "auto"

    _settings_type = AdmmSettings
    _masking_type: ClassVar[Any] = Masking | None

    def _fit(self, X: Any, y: Any, weights: Array, targets: Array) -> Self:
        """Train on checked input; ``targets`` (rows, outputs), ``weights`` (rows,)."""
        assigned = self._assigned()
        tables = self._tables(X, assigned)
        base, seed = self._randomness()
        drawn = {"outputs": targets.shape[1], "seed": seed}
        if self._regression:
            drawn |= {"regression": True, "loss": "square"}
        settings = self._settings(AdmmSettings, tuple(tables), **drawn)
        settings.check_rows(len(targets))
        settings.check_labels(targets, weights)
        if settings.privacy is not None and self.preparations_:
            raise InputError(
                "columns must be numbers without missing cells where privacy is given: how others "
                "are prepared depends on all rows"
            )
        budgets = self._budgets(settings)
        self._warn_of_published_noise(settings)
        job = secrets.token_hex(8)
        outcome = self._run(
            tables,
            settings.label_parties,
            digest(settings),
            Labels(targets, weights),
            base,
            lambda party: ADMM.train(party, settings, budgets.get(party.name), job),
        )
        self._keep(outcome, settings, assigned)
        return self

    def _keep(
        self, outcome: Outcome, settings: AdmmSettings, assigned: dict[str, list[int]]
    ) -> None:
        """Set the fitted attributes."""
        self.shards_: Mapping[str, AdmmShard] = dict(outcome.results)
        self.ledger_ = outcome.ledger
        self.report_ = outcome.report
        self.settings_ = settings
        self.columns_ = assigned
        leader = self.shards_[settings.label_parties[0]]
        self.alpha_ = leader.penalty
        self.rho_ = leader.rho
        self.rounds_ = leader.rounds
        self.objective_ = [entry.objective for entry in leader.rounds]
        self.n_iter_ = len(leader.rounds)
        self.assumptions_ = {name: shard.assumptions for name, shard in self.shards_.items()}
        if settings.privacy is not None:
            self.privacy_spent_ = {name: shard.spent for name, shard in self.shards_.items()}
            self.report_ = replace(self.report_, spent=self.privacy_spent_)
        elif not leader.converged:
            warnings.warn(
                f"not converged to tolerance {settings.tol:g} in {self.n_iter_} rounds; "
                "raise max_iter, tol or alpha, or choose another rho",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _decide(self, X: Any) -> Array:
        """f of each row, (rows, outputs): the joint prediction of all parties by a secure sum."""
        check_is_fitted(self)
        label_parties = self.settings_.label_parties
        results = self._run_joint(
            X,
            self.columns_,
            label_parties,
            digest(self.settings_),
            lambda party: ADMM.predict(party, self.shards_[party.name]),
        )
        return np.asarray(results[label_parties[0]])

    def _budgets(self, settings: AdmmSettings) -> dict[str, BudgetFile]:
        """The owners' budget files by party; each is opened, and charged, at its party only."""
        if self.budget_files is None:
            return {}
        if settings.privacy is None:
            raise InputError.of("budget_files", "None without privacy", self.budget_files)
        if not isinstance(self.budget_files, Mapping):
            raise InputError.of(
                "budget_files", "a mapping of parties to files, or None", self.budget_files
            )
        for name in self.budget_files:
            if name not in settings.parties:
                raise InputError.of(
                    "budget_files", f"for some of the parties {list(settings.parties)}", name
                )
        return {name: BudgetFile(os.fspath(path)) for name, path in self.budget_files.items()}

    def _warn_of_published_noise(self, settings: AdmmSettings) -> None:
        if settings.privacy is not None and settings.privacy.mechanism == "paper":
            warnings.warn(
                "mechanism='paper' adds the noise that was published, which lies in the span of a "
                "party's columns and protects nothing; it is here to reproduce, not for real data",
                UserWarning,
                stacklevel=4,
            )


@dataclass(eq=False, repr=False, kw_only=True)
class ADMMClassifier(FederatedClassifier, SharingEstimator):
    """A linear classifier over columns of several parties, each sharing one number per row.

    f(x) = Σ_m d_m(x)ᵀx_m + b: a part per party, found by ADMM sharing with secure sums; optionally
    with differential privacy for each party's rows. With ``kernel="gaussian"`` every party first
    draws random features of its own columns, and f is a sum of one kernel machine per party.

    Parameters
    ----------
    parties : mapping of names to columns, a number of parties, or a function, default 2
        Columns by name (data frames) or number. A number cuts the columns into runs.
    label_parties : name, default: the first party
        The one party that holds the labels; it is also the central node.
    loss : "logistic", "square", "smooth_hinge" or "sigmoid" (smooth, not convex)
    alpha : number or "auto"
        λ of (1/n) Σ L + λR. "auto" is 0.1/n.
    l1_ratio : number from 0 to 1
        R(x) = l1_ratio·‖x‖₁ + (1 − l1_ratio)/2·‖x‖²: 0 is ridge, 1 lasso, between is elastic net.
    rho : number or "auto"
        ρ, the weight of the augmented term.
    averaging : bool
        True is the averaged form, which converges for every ρ if the loss is convex; False the
        parallel form as published, which needs a large enough ρ.
    fit_intercept : bool
        A constant at the label party, not penalised (with privacy: penalised, and part of its row).
    kernel : None, "gaussian" or `Gaussian(...)`
        None is a linear model; "gaussian" draws each party's own random features, with the options
        of `Gaussian`.
    missing : "refuse", "mean" or "indicator"
        Missing cells, and text in data frames, as for `FDSKLClassifier`.
    scale : None, "standard", "minmax" or "max"
        Each party's own scaling of its columns, kept in its shard; no noise protects it.
    privacy : None or `Privacy(...)`
        The total that each party spends in ``max_iter`` rounds, for any one of its rows.
    budget_files : None, or a mapping of parties to paths
        Each owner's file (`vertikal.privacy.budget.BudgetFile`); a job beyond it is refused there.
    masking : "pads", "trees" or None
        None sends each party's numbers in the clear, as the paper does.
    tol, max_iter : number, int or "auto"
        When training stops; with privacy it runs all rounds, which is when the budget is spent.
        "auto" is 200 rounds, and with privacy one: its noise grows with the root of their number.
    timeout : seconds
        How long any party waits for a message of another.
    random_state : int, RandomState or None
        Fixes the model without privacy. Noise is always fresh.
    verbose : 0, 1 or an observer
    class_weight : None, "balanced" or a mapping of classes to weights

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

    loss: str = "logistic"
    class_weight: Mapping[Any, float] | str | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class ADMMRegressor(FederatedRegressor, SharingEstimator):
    """Linear or additive regression over columns of several parties, by ADMM sharing.

    The loss is the square loss. The label party standardises the targets, and predictions come back
    in their own unit.

    Parameters
    ----------
    parties, label_parties, alpha, l1_ratio, rho, averaging, fit_intercept, kernel, scale, missing
        As those of `ADMMClassifier`.
    privacy, budget_files, masking, tol, max_iter, timeout, random_state, verbose
        As those of `ADMMClassifier`.

    Attributes
    ----------
    rounds_, privacy_spent_, assumptions_, report_, ledger_, shards_, alpha_, rho_, n_iter_
        As those of `ADMMClassifier`; so are objective_, columns_ and settings_.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from vertikal import ADMMRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ADMMRegressor(parties=2, scale="standard", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """
