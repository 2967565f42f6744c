"""What ADMM sharing's estimators share: parameters, settings, fitting and joint prediction."""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from vertikal.algorithms.admm import sharing as admm
from vertikal.algorithms.admm.settings import AdmmSettings, Privacy
from vertikal.algorithms.admm.shard import AdmmShard
from vertikal.errors import InputError
from vertikal.estimators.base import FederatedEstimator, plain
from vertikal.estimators.columns import choose_label_parties
from vertikal.estimators.simulation import Outcome
from vertikal.party.clock import Observer
from vertikal.party.party import Labels, digest
from vertikal.party.sums import MASKINGS
from vertikal.privacy.budget import BudgetFile

Array = npt.NDArray[Any]

_PRIVACY = ("epsilon", "delta", "bound", "mechanism")


class SharingEstimator(FederatedEstimator):
    """The base of `ADMMClassifier` and `ADMMRegressor`; see there."""

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
    ) -> None:
        self.parties = parties
        self.label_party = label_party
        self.loss = loss
        self.regulariser = regulariser
        self.l1_ratio = l1_ratio
        self.alpha = alpha
        self.rho = rho
        self.averaging = averaging
        self.fit_intercept = fit_intercept
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.n_components = n_components
        self.scale = scale
        self.privacy = privacy
        self.budget_files = budget_files
        self.masking = masking
        self.tol = tol
        self.max_iter = max_iter
        self.timeout = timeout
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: Any, y: Any, weights: Array, targets: Array) -> Self:
        """Train on checked input; ``targets`` (rows, outputs), ``weights`` (rows,)."""
        assigned = self._assigned()
        tables = self._tables(X, assigned, varying=False)
        base, seed = self._randomness()
        settings = self._settings(tuple(tables), targets.shape[1], seed)
        settings.check_rows(len(targets))
        settings.check_labels(targets, weights)
        budgets = self._budgets(settings)
        self._warn_of_published_noise(settings)
        job = secrets.token_hex(8)
        outcome = self._run(
            tables,
            settings.label_parties,
            digest(settings),
            Labels(targets, weights),
            base,
            lambda party: admm.train(party, settings, budgets.get(party.name), job),
        )
        self._keep(outcome, settings, assigned)
        return self

    def _keep(
        self, outcome: Outcome, settings: AdmmSettings, assigned: dict[str, list[int]]
    ) -> None:
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
        return self._run_joint(
            X,
            self.columns_,
            self.settings_.label_parties,
            digest(self.settings_),
            lambda party: admm.predict(party, self.shards_[party.name]),
        )

    def _settings(self, parties: tuple[str, ...], outputs: int, seed: int) -> AdmmSettings:
        if self.masking not in (*MASKINGS, None):
            allowed = ", ".join(map(repr, (*MASKINGS, None)))
            raise InputError.of("masking", f"one of {allowed}", self.masking)
        if self.masking == "trees" and len(parties) < 3:
            raise InputError.of("masking", "'pads' or None for two parties", "trees")
        if self.label_party is not None and not isinstance(self.label_party, str):
            raise InputError.of("label_party", "the name of one party, or None", self.label_party)
        if self.label_party is not None and self.label_party not in parties:
            raise InputError.of(
                "label_party", f"one of the parties {list(parties)}", self.label_party
            )
        for name in ("averaging", "fit_intercept"):
            if not isinstance(plain(getattr(self, name)), bool):
                raise InputError.of(name, "True or False", getattr(self, name))
        self._check_timeout()
        return AdmmSettings(
            parties=parties,
            label_parties=choose_label_parties(self.label_party, parties),
            loss=self.loss,
            regulariser=self.regulariser,
            l1_ratio=plain(self.l1_ratio),
            alpha=plain(self.alpha),
            rho=plain(self.rho),
            averaging=plain(self.averaging),
            fit_intercept=plain(self.fit_intercept),
            kernel=self.kernel,
            bandwidth=plain(self.bandwidth),
            n_components=plain(self.n_components),
            scale=self.scale,
            privacy=self._privacy(),
            tol=plain(self.tol),
            max_iter=plain(self.max_iter),
            outputs=outputs,
            regression=self._regression,
            seed=seed,
        )

    def _privacy(self) -> Privacy | None:
        if self.privacy is None:
            return None
        given = self.privacy
        if not isinstance(given, Mapping) or not {"epsilon", "delta"} <= set(given) <= set(
            _PRIVACY
        ):
            raise InputError.of(
                "privacy",
                "None, or a mapping with 'epsilon' and 'delta' (and 'bound', 'mechanism')",
                given,
            )
        return Privacy(**{name: plain(value) for name, value in given.items()})

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
