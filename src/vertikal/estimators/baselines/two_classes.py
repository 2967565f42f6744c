"""Training and predicting that the baselines of two classes share: a program of all parties."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from vertikal.algorithms.algorithm import JobSettings
from vertikal.errors import InputError
from vertikal.estimators.base import FederatedEstimator
from vertikal.estimators.tasks import FederatedClassifier
from vertikal.party.party import Labels, Party, digest

Array = npt.NDArray[Any]


@dataclass(eq=False, repr=False, kw_only=True)
class TwoClassBaseline(FederatedClassifier, FederatedEstimator):
    """A classifier of two classes whose parties run `_train` and `_predict`."""

    class_weight: Mapping[Any, float] | str | None = None

    @abstractmethod
    def _train(self, party: Party, settings: Any) -> Any:
        """Train at one party, and return its shard."""

    @abstractmethod
    def _predict(self, party: Party, shard: Any) -> Array | None:
        """Predict at one party: f (rows, 1) at the first label party, None elsewhere."""

    def _chosen_settings(self, names: tuple[str, ...], seed: int) -> Any:
        """Make the settings of a run of these parties."""
        return self._settings(self._settings_type, names, seed=seed)

    def _fit(self, X: Any, y: Any, weights: Array, targets: Array) -> Self:
        """Train on checked input; ``targets`` (rows, 1), ``weights`` (rows,)."""
        if targets.shape[1] != 1:
            raise InputError.of("y", "of two classes", f"{targets.shape[1]} classes")
        assigned = self._assigned()
        tables = self._tables(X, assigned)
        base, seed = self._randomness()
        settings = self._chosen_settings(tuple(tables), seed)
        outcome = self._run(
            tables,
            settings.label_parties,
            digest(settings),
            Labels(targets, weights),
            base,
            lambda party: self._train(party, settings),
        )
        self.shards_: Mapping[str, Any] = dict(outcome.results)
        self.ledger_, self.report_ = outcome.ledger, outcome.report
        self.settings_: JobSettings = settings
        self.columns_ = assigned
        return self

    def _decide(self, X: Any) -> Array:
        """f of each row, (rows, 1)."""
        check_is_fitted(self)
        results = self._run_joint(
            X,
            self.columns_,
            self.settings_.label_parties,
            digest(self.settings_),
            lambda party: self._predict(party, self.shards_[party.name]),
        )
        return np.asarray(results[self.settings_.label_parties[0]])
