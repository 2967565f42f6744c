"""VAFLClassifier: a small neural network over distributed columns, as AVFKAM compares with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from vertikal.algorithms.vafl.settings import VaflSettings
from vertikal.algorithms.vafl.training import VaflShard, predict, train
from vertikal.errors import InputError
from vertikal.estimators.base import FederatedEstimator
from vertikal.estimators.tasks import FederatedClassifier
from vertikal.party.party import Labels, digest

Array = npt.NDArray[Any]


@dataclass(eq=False, repr=False, kw_only=True)
class VAFLClassifier(FederatedClassifier, FederatedEstimator):
    """VAFL (Chen et al. 2020): every party embeds its columns, and the label party predicts.

    Nobody waits for anybody but the label party. Embeddings and slopes travel in the clear.
    Written in NumPy: no other library is needed.

    Parameters
    ----------
    parties, label_parties, timeout, random_state, verbose, missing
        As those of `FDSKLClassifier`; one label party.
    embedding, hidden : int
        Numbers that each party makes of a row, and units of the head's layer.
    step_size : number
        Of plain gradient steps, at all parties.
    alpha : number
        λ of (1/n) Σ L + λ/2 ‖all weights‖²; zero as published.
    n_steps, batch_size : int
        Steps on batches of all parties together, and rows of a batch.

    Attributes
    ----------
    classes_, shards_, ledger_, report_, columns_, settings_
        As those of `FDSKLClassifier`.
    trace_ : mean loss of each batch, before its step
    updates_ : steps that were on batches of each party
    """

    loss: str = "logistic"
    embedding: int = 64
    hidden: int = 128
    step_size: float = 0.02
    alpha: float = 0.0
    n_steps: int = 5000
    batch_size: int = 64
    class_weight: Mapping[Any, float] | str | None = None

    _settings_type = VaflSettings

    def _fit(self, X: Any, y: Any, weights: Array, targets: Array) -> Self:
        """Train on checked input; ``targets`` (rows, 1), ``weights`` (rows,)."""
        if targets.shape[1] != 1:
            raise InputError.of("y", "of two classes", f"{targets.shape[1]} classes")
        assigned = self._assigned()
        tables = self._tables(X, assigned, varying=False)
        base, seed = self._randomness()
        settings = self._settings(VaflSettings, tuple(tables), seed=seed)
        outcome = self._run(
            tables,
            settings.label_parties,
            digest(settings),
            Labels(targets, weights),
            base,
            lambda party: train(party, settings),
        )
        self.shards_: Mapping[str, VaflShard] = dict(outcome.results)
        self.ledger_, self.report_ = outcome.ledger, outcome.report
        self.settings_, self.columns_ = settings, assigned
        server = self.shards_[settings.label_parties[0]]
        self.trace_ = list(server.trace)
        self.updates_ = {name: server.order.count(name) for name in tables}
        return self

    def _decide(self, X: Any) -> Array:
        """f of each row, (rows, 1)."""
        check_is_fitted(self)
        results = self._run_joint(
            X,
            self.columns_,
            self.settings_.label_parties,
            digest(self.settings_),
            lambda party: predict(party, self.shards_[party.name]),
        )
        return np.asarray(results[self.settings_.label_parties[0]])
