"""What FDSKL's estimators share: parameters, checking, fitting and joint prediction."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from vertikal.algorithms.kernel_machine import fdskl
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.algorithms.kernel_machine.written_settings import plainly
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.estimators.base import FederatedEstimator, plain
from vertikal.estimators.columns import check_name, choose_label_parties
from vertikal.estimators.simulation import Federation, Outcome
from vertikal.party.clock import Observer
from vertikal.party.party import Labels, Party, digest
from vertikal.party.sums import MASKINGS

Array = npt.NDArray[Any]


class FederatedKernelEstimator(FederatedEstimator):
    """The base of `FDSKLClassifier`, `FDSKLRegressor` and `AVFKAMClassifier`; see there."""

    _settings_type: type[FdsklSettings] = FdsklSettings

    def __init__(
        self,
        parties: int | Mapping[str, Any] = 2,
        *,
        label_parties: int | str | list[str] | tuple[str, ...] | None = None,
        kernel: str = "gaussian",
        bandwidth: float | Literal["median", "mean"] = "median",
        n_components: int = 2048,
        alpha: float | Literal["auto"] = "auto",
        loss: str = "logistic",
        solver: str = "exact",
        step_size: float | Literal["auto"] = "auto",
        steps: int | None = None,
        samples: int = 64,
        features: int = 64,
        precondition: bool = False,
        feature_map: str = "fourier",
        disclosure: str = "open",
        helper: str | None = None,
        dealer: str | None = None,
        hidden_bits: int = 64,
        max_passes: int | None = None,
        value_bits: int = 6,
        scale: str | None = None,
        ring_bits: int | Literal["auto"] = "auto",
        masking: str = "pads",
        directions: str = "private",
        schedule: str = "sync",
        max_staleness: int = 256,
        allow_missing: bool = False,
        cache_size: int | str | None = None,
        tol: float = 1e-3,
        max_iter: int = 200,
        timeout: float = 300.0,
        random_state: Any = None,
        verbose: int | bool | Observer = 0,
    ) -> None:
        self.parties = parties
        self.label_parties = label_parties
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.n_components = n_components
        self.alpha = alpha
        self.loss = loss
        self.solver = solver
        self.step_size = step_size
        self.steps = steps
        self.samples = samples
        self.features = features
        self.precondition = precondition
        self.feature_map = feature_map
        self.disclosure = disclosure
        self.helper = helper
        self.dealer = dealer
        self.hidden_bits = hidden_bits
        self.max_passes = max_passes
        self.value_bits = value_bits
        self.scale = scale
        self.ring_bits = ring_bits
        self.masking = masking
        self.directions = directions
        self.schedule = schedule
        self.max_staleness = max_staleness
        self.allow_missing = allow_missing
        self.cache_size = cache_size
        self.tol = tol
        self.max_iter = max_iter
        self.timeout = timeout
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: Any, y: Any, weights: Array, targets: Array) -> Self:
        """Train on checked input; ``targets`` (rows, outputs), ``weights`` (rows,)."""
        assigned = self._assigned()
        tables = self._tables(X, assigned, varying=True)
        base, seed = self._randomness()
        settings = self._settings(tuple(tables), targets.shape[1], seed)
        settings.check_rows(len(targets))
        self._warn_of_shared_directions()
        outcome = self._run(
            tables,
            settings.label_parties,
            digest(settings),
            Labels(targets, weights),
            base,
            lambda party: self._train(party, settings),
        )
        self._keep(outcome, settings, assigned)
        self._warn_of_convergence(len(targets))
        return self

    def _train(self, party: Party, settings: FdsklSettings) -> Shard:
        """The program that every party runs."""
        return fdskl.train(party, settings)

    def _keep(
        self, outcome: Outcome, settings: FdsklSettings, assigned: dict[str, list[int]]
    ) -> None:
        self.shards_: Mapping[str, Shard] = dict(outcome.results)
        self.ledger_ = outcome.ledger
        self.report_ = outcome.report
        self.settings_ = settings
        self.columns_ = assigned
        self._leader = next(name for name in settings.label_parties if self.shards_[name].learned)
        leader = self.shards_[self._leader]
        self.missing_ = leader.training.missing
        if self.missing_:
            warnings.warn(
                f"label parties {list(self.missing_)} vanished, and the model has none of their "
                f"coefficients: {outcome.vanished}",
                UserWarning,
                stacklevel=4,
            )
        self.bandwidth_ = leader.bandwidth
        self.alpha_ = leader.training.penalty
        self.objective_ = list(leader.training.objective)
        self.n_iter_ = leader.training.iterations

    def _warn_of_convergence(self, rows: int) -> None:
        settings, training = self.settings_, self.shards_[self._leader].training
        most = settings.iterations(rows)
        if training.converged or training.iterations < most:
            return
        limit = "max_iter"
        if most < settings.max_iter:
            limit = "max_passes (which opens more), n_components, the number of rows"
        warnings.warn(
            f"not converged to tolerance {settings.stopping():g} in {self.n_iter_} iterations; "
            f"raise {limit}, tol or alpha",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _decide(self, X: Any) -> Array:
        """f of each row, (rows, outputs): the joint prediction of all parties by secure sums."""
        check_is_fitted(self)
        return self._run_joint(
            X,
            self.columns_,
            self.settings_.label_parties,
            digest(self.settings_),
            lambda party: fdskl.predict(party, self.shards_[party.name]),
            self._leader,
        )

    def _federation(self, *arguments: Any) -> Federation:
        federation = super()._federation(*arguments)
        training = federation.labels is not None
        if training and self.allow_missing and (self.solver, self.schedule) == ("dsg", "async"):
            return replace(federation, dispensable=federation.label_parties)
        return federation

    def _tables(
        self, X: Any, assigned: Mapping[str, list[int]], *, varying: bool
    ) -> dict[str, Table]:
        """As ever; and where features are hidden, a dealer that is none of the parties joins.

        It takes part without columns.
        """
        tables = super()._tables(X, assigned, varying=varying)
        if self.disclosure != "open" and self.dealer is not None and self.dealer not in tables:
            check_name("dealer", self.dealer)
            rows = next(iter(tables.values())).rows
            tables[self.dealer] = Table(self.dealer, (), np.empty((rows, 0)))
        return tables

    def _settings(self, parties: tuple[str, ...], outputs: int, seed: int) -> FdsklSettings:
        if self.masking not in MASKINGS:
            raise InputError.of("masking", f"one of {', '.join(map(repr, MASKINGS))}", self.masking)
        if self.masking == "trees" and len(parties) < 3:
            raise InputError.of(
                "masking", "'pads' for two parties (one tree is all there is)", "trees"
            )
        if self.masking == "trees" and self.disclosure != "open":
            raise InputError.of("masking", f"'pads' with disclosure={self.disclosure!r}", "trees")
        label_parties = choose_label_parties(self.label_parties, parties)
        if self.masking == "trees" and len(label_parties) == 2:
            raise InputError.of(
                "masking", "'pads' for two label parties (one tree is all there is)", "trees"
            )
        if self.masking == "trees" and self.allow_missing:
            raise InputError.of("masking", "'pads' with allow_missing=True", "trees")
        self._check_timeout()
        written = plainly(
            {
                "feature_map": self.feature_map,
                "ring_bits": plain(self.ring_bits),
                "cache_size": plain(self.cache_size),
            }
        )
        return self._settings_type(
            parties=parties,
            label_parties=label_parties,
            kernel=self.kernel,
            bandwidth=plain(self.bandwidth),
            n_components=plain(self.n_components),
            alpha=plain(self.alpha),
            loss=self.loss,
            solver=self.solver,
            step_size=plain(self.step_size),
            steps=plain(self.steps),
            samples=plain(self.samples),
            features=plain(self.features),
            precondition=bool(self.precondition),
            feature_map=self.feature_map,
            disclosure=self.disclosure,
            helper=self.helper,
            dealer=self.dealer,
            hidden_bits=plain(self.hidden_bits),
            max_passes=plain(self.max_passes),
            value_bits=plain(self.value_bits),
            scale=self.scale,
            ring_bits=written["ring_bits"],
            directions=self.directions,
            schedule=self.schedule,
            max_staleness=plain(self.max_staleness),
            allow_missing=bool(self.allow_missing),
            cache_size=written["cache_size"],
            tol=plain(self.tol),
            max_iter=plain(self.max_iter),
            outputs=outputs,
            regression=self._regression,
            seed=seed,
            **self._further_settings(),
        )

    def _further_settings(self) -> dict[str, Any]:
        """What a subclass adds."""
        return {}

    def _warn_of_shared_directions(self) -> None:
        if self.directions == "shared":
            warnings.warn(
                "directions='shared' lets a label party recover the differences between any two "
                "rows of the other parties; it is here to reproduce the papers, not for real data",
                UserWarning,
                stacklevel=4,
            )
