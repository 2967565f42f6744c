"""What FDSKL's estimators share: parameters, checking, fitting and joint prediction."""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from vertikal.algorithms import fdskl
from vertikal.algorithms.settings import FdsklSettings
from vertikal.algorithms.shard import Shard
from vertikal.clock import Observer
from vertikal.data.prepare import check_bounds, column_bounds
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.estimators.columns import (
    assign_columns,
    check_name,
    choose_label_parties,
    cut,
    refuse_text,
)
from vertikal.estimators.progress import ProgressBars
from vertikal.estimators.simulation import Federation, Outcome, simulate
from vertikal.party import MASKINGS, Labels, digest
from vertikal.secure.prg import derive_key, fresh_key

Array = npt.NDArray[Any]

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


class FederatedKernelEstimator(BaseEstimator):
    """The base of `FDSKLClassifier` and `FDSKLRegressor`; see there."""

    _regression = False

    def __init__(
        self,
        parties: int | Mapping[str, Any] = 2,
        *,
        label_parties: int | str | list[str] | tuple[str, ...] | None = None,
        kernel: str = "gaussian",
        bandwidth: float | Literal["median"] = "median",
        n_directions: int = 2048,
        penalty: float | Literal["auto"] = "auto",
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
        scale: str | None = None,
        ring_bits: int | Literal["auto"] = "auto",
        masking: str = "pads",
        directions: str = "private",
        schedule: str = "sync",
        memory: int | str | None = None,
        tolerance: float = 1e-3,
        max_iterations: int = 200,
        timeout: float = 300.0,
        random_state: Any = None,
        verbose: int | bool | Observer = 0,
    ) -> None:
        self.parties = parties
        self.label_parties = label_parties
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.n_directions = n_directions
        self.penalty = penalty
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
        self.scale = scale
        self.ring_bits = ring_bits
        self.masking = masking
        self.directions = directions
        self.schedule = schedule
        self.memory = memory
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.timeout = timeout
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fit(self, X: Any, y: Any, weights: Array, targets: Array) -> Self:
        """Train on checked input; ``targets`` (rows, outputs), ``weights`` (rows,)."""
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else [str(name) for name in names]
        assigned = assign_columns(self.parties, self.n_features_in_, names)
        tables = cut(X, assigned, names)
        _check_tables(tables, X, assigned, varying=True)
        self._invite_dealer(tables)
        base, seed = self._randomness()
        settings = self._settings(tuple(tables), targets.shape[1], seed)
        self._warn_of_shared_directions()
        with self._observer() as observer:
            outcome = simulate(
                self._federation(
                    tables,
                    settings,
                    Labels(targets, weights),
                    {name: derive_key(base, "party", name) for name in tables},
                    observer,
                ),
                lambda party: fdskl.train(party, settings),
            )
        self._keep(outcome, settings, assigned)
        return self

    def _keep(
        self, outcome: Outcome, settings: FdsklSettings, assigned: dict[str, list[int]]
    ) -> None:
        self.shards_: Mapping[str, Shard] = dict(outcome.results)
        self.ledger_ = outcome.ledger
        self.report_ = outcome.report
        self.settings_ = settings
        self.columns_ = assigned
        leader = self.shards_[settings.label_parties[0]]
        self.bandwidth_ = leader.bandwidth
        self.penalty_ = leader.training.penalty
        self.objective_ = list(leader.training.objective)
        self.n_iter_ = leader.training.iterations
        if not leader.training.converged and self.n_iter_ == settings.iterations():
            limit = "max_iterations"
            if settings.iterations() < settings.max_iterations:
                limit = "max_passes (which opens more), n_directions"
            warnings.warn(
                f"not converged to tolerance {settings.stopping():g} in {self.n_iter_} iterations; "
                f"raise {limit}, tolerance or penalty",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _decide(self, X: Any) -> Array:
        """f of each row, (rows, outputs): the joint prediction of all parties by secure sums."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        names = getattr(self, "feature_names_in_", None)
        tables = cut(X, self.columns_, None if names is None else [str(name) for name in names])
        _check_tables(tables, X, self.columns_, varying=False)
        self._invite_dealer(tables)
        with self._observer() as observer:
            outcome = simulate(
                self._federation(
                    tables, self.settings_, None, {name: fresh_key() for name in tables}, observer
                ),
                lambda party: fdskl.predict(party, self.shards_[party.name]),
            )
        return np.asarray(outcome.results[self.settings_.label_parties[0]])

    def _invite_dealer(self, tables: dict[str, Table]) -> None:
        """Where features are hidden, a dealer that is none of the parties joins without columns."""
        if self.disclosure == "open" or self.dealer is None or self.dealer in tables:
            return
        check_name("dealer", self.dealer)
        rows = next(iter(tables.values())).rows
        tables[self.dealer] = Table(self.dealer, (), np.empty((rows, 0)))

    def _validate(self, X: Any, y: Any = None, *, reset: bool) -> Any:
        """scikit-learn's own checks; cells that are no numbers are named with column and party."""
        options: dict[str, Any] = {
            "accept_sparse": "csr",
            "dtype": (np.float64, np.float32),
            "ensure_all_finite": False,
            "reset": reset,
        }
        if reset:
            options["ensure_min_samples"] = 2
            options["y_numeric"] = self._regression
        try:
            return (
                validate_data(self, X, y, **options) if reset else validate_data(self, X, **options)
            )
        except ValueError as error:
            if "convert" in str(error) and "float" in str(error):
                raw = np.asarray(X, object)
                names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
                assigned = assign_columns(self.parties, raw.shape[1], names)
                used = {number for numbers in assigned.values() for number in numbers}
                spare = [number for number in range(raw.shape[1]) if number not in used]
                refuse_text(raw, assigned, names)
                refuse_text(raw, {"(none)": spare}, names)
            raise

    def _weights(self, sample_weight: Any, X: Any) -> Array:
        weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64))
        if (weights < 0).any():
            raise InputError.of("sample_weight", "not negative", float(weights.min()))
        if not weights.any():
            raise InputError.of("sample_weight", "positive for at least one row", "all zero")
        return weights

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
        timeout = _plain(self.timeout)
        number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if not number or not 0 < timeout <= threading.TIMEOUT_MAX:
            raise InputError.of("timeout", "a positive number of seconds", timeout)
        return FdsklSettings(
            parties=parties,
            label_parties=label_parties,
            kernel=self.kernel,
            bandwidth=_plain(self.bandwidth),
            n_directions=_plain(self.n_directions),
            penalty=_plain(self.penalty),
            loss=self.loss,
            solver=self.solver,
            step_size=_plain(self.step_size),
            steps=_plain(self.steps),
            samples=_plain(self.samples),
            features=_plain(self.features),
            precondition=bool(self.precondition),
            feature_map=self.feature_map,
            disclosure=self.disclosure,
            helper=self.helper,
            dealer=self.dealer,
            hidden_bits=_plain(self.hidden_bits),
            max_passes=_plain(self.max_passes),
            scale=self.scale,
            ring_bits=self._bits(),
            directions=self.directions,
            schedule=self.schedule,
            memory=parse_bytes(_plain(self.memory)),
            tolerance=_plain(self.tolerance),
            max_iterations=_plain(self.max_iterations),
            outputs=outputs,
            regression=self._regression,
            seed=seed,
        )

    def _bits(self) -> Any:
        """Bits of a ring element: a phase needs 8, a distance to a landmark 16."""
        if isinstance(self.ring_bits, str) and self.ring_bits == "auto":
            return 16 if self.feature_map == "landmarks" else 8
        return _plain(self.ring_bits)

    def _federation(
        self,
        tables: Mapping[str, Table],
        settings: FdsklSettings,
        labels: Labels | None,
        secrets: Mapping[str, bytes],
        observer: Observer | None,
    ) -> Federation:
        return Federation(
            tables,
            settings.label_parties,
            labels,
            secrets,
            digest(settings),
            self.masking,
            float(self.timeout),
            observer,
        )

    def _randomness(self) -> tuple[bytes, int]:
        """The base of the parties' secrets and the public seed: from the system, or as fixed."""
        if self.random_state is None:
            return fresh_key(), int.from_bytes(os.urandom(7), "big")
        generator = check_random_state(self.random_state)
        return generator.bytes(32), int.from_bytes(generator.bytes(7), "big")

    def _warn_of_shared_directions(self) -> None:
        if self.directions == "shared":
            warnings.warn(
                "directions='shared' lets a label party recover the differences between any two "
                "rows of the other parties; it is here to reproduce the papers, not for real data",
                UserWarning,
                stacklevel=4,
            )

    def _observer(self) -> ProgressBars:
        return ProgressBars(self.verbose)


def _check_tables(
    tables: Mapping[str, Table], X: Any, assigned: Mapping[str, list[int]], *, varying: bool
) -> None:
    """Every party's own check of its columns, by one look at all of them."""
    lowest, highest = column_bounds(X)
    for name, table in tables.items():
        numbers = assigned[name]
        check_bounds(table, lowest[numbers], highest[numbers], varying=varying)


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's own, so that settings have one form."""
    return value.item() if isinstance(value, np.generic) else value


def parse_bytes(text: object) -> int | None:
    """A number of bytes, from a whole number or a text such as ``"500MB"`` or ``"2 GB"``."""
    if text is None or (isinstance(text, int) and not isinstance(text, bool)):
        if isinstance(text, int) and text < 1:
            raise InputError.of("memory", "a positive number of bytes, '2GB', or None", text)
        return text
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", str(text).lower())
    if not isinstance(text, str) or match is None or float(match[1]) <= 0:
        raise InputError.of(
            "memory", "a positive number of bytes, a text like '2GB', or None", text
        )
    return int(float(match[1]) * _UNITS[match[2]])
