"""What all federated estimators share: checking input, cutting it into tables, running programs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from vertikal.data.column_checks import check_bounds, column_bounds
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.estimators.columns import assign_columns, cut, refuse_text
from vertikal.estimators.progress import ProgressBars
from vertikal.estimators.simulation import Federation, Outcome, simulate
from vertikal.party.clock import Observer
from vertikal.party.party import Labels, Party
from vertikal.secure.keys.prg import derive_key, fresh_key

Array = npt.NDArray[Any]


class FederatedEstimator(BaseEstimator):
    """The base of all estimators that simulate parties.

    A subclass has the parameters ``parties``, ``masking``, ``timeout``, ``random_state`` and
    ``verbose``, and calls `_run` for training and `_run_joint` for prediction.
    """

    _regression = False
    parties: Any
    masking: Any
    timeout: Any
    random_state: Any
    verbose: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _tables(
        self, X: Any, assigned: Mapping[str, list[int]], *, varying: bool
    ) -> dict[str, Table]:
        """Each party's own table of checked cells."""
        names = getattr(self, "feature_names_in_", None)
        tables = cut(X, assigned, None if names is None else [str(name) for name in names])
        # Every party's own check of its columns, by one look at all of them.
        lowest, highest = column_bounds(X)
        for name, table in tables.items():
            numbers = assigned[name]
            check_bounds(table, lowest[numbers], highest[numbers], varying=varying)
        return tables

    def _assigned(self) -> dict[str, list[int]]:
        """Column numbers by party."""
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else [str(name) for name in names]
        return assign_columns(self.parties, self.n_features_in_, names)

    def _run(
        self,
        tables: Mapping[str, Table],
        label_parties: tuple[str, ...],
        settings: str,
        labels: Labels,
        base: bytes,
        program: Callable[[Party], Any],
    ) -> Outcome:
        """Train: ``base`` is what the parties' secrets are derived from."""
        secrets = {name: derive_key(base, "party", name) for name in tables}
        return self._simulate(tables, label_parties, settings, labels, secrets, program)

    def _run_joint(
        self,
        X: Any,
        columns: Mapping[str, list[int]],
        label_parties: tuple[str, ...],
        settings: str,
        program: Callable[[Party], Any],
        leader: str | None = None,
    ) -> Array:
        """The joint prediction of all parties for these rows, (rows, outputs), at ``leader``."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        tables = self._tables(X, columns, varying=False)
        secrets = {name: fresh_key() for name in tables}
        outcome = self._simulate(tables, label_parties, settings, None, secrets, program)
        return np.asarray(outcome.results[leader or label_parties[0]])

    def _simulate(
        self,
        tables: Mapping[str, Table],
        label_parties: tuple[str, ...],
        settings: str,
        labels: Labels | None,
        secrets: Mapping[str, bytes],
        program: Callable[[Party], Any],
    ) -> Outcome:
        with ProgressBars(self.verbose) as observer:
            federation = self._federation(
                tables, label_parties, settings, labels, secrets, observer
            )
            return simulate(federation, program)

    def _federation(
        self,
        tables: Mapping[str, Table],
        label_parties: tuple[str, ...],
        settings: str,
        labels: Labels | None,
        secrets: Mapping[str, bytes],
        observer: Observer,
    ) -> Federation:
        return Federation(
            tables,
            label_parties,
            labels,
            secrets,
            settings,
            self.masking,
            float(self.timeout),
            observer,
        )

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

    def _check_timeout(self) -> None:
        timeout = plain(self.timeout)
        number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if not number or not 0 < timeout <= threading.TIMEOUT_MAX:
            raise InputError.of("timeout", "a positive number of seconds", timeout)

    def _randomness(self) -> tuple[bytes, int]:
        """The base of the parties' secrets and the public seed: from the system, or as fixed."""
        if self.random_state is None:
            return fresh_key(), int.from_bytes(os.urandom(7), "big")
        generator = check_random_state(self.random_state)
        return generator.bytes(32), int.from_bytes(generator.bytes(7), "big")


def plain(value: Any) -> Any:
    """NumPy's numbers as Python's own, so that settings have one form."""
    return value.item() if isinstance(value, np.generic) else value
