"""VAFLClassifier: a small neural network over distributed columns, as AVFKAM compares with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy.typing as npt

from vertikal.algorithms.vafl.settings import VaflSettings
from vertikal.algorithms.vafl.training import VaflShard, predict, train
from vertikal.estimators.baselines.two_classes import TwoClassBaseline
from vertikal.party.party import Party

Array = npt.NDArray[Any]


@dataclass(eq=False, repr=False, kw_only=True)
class VAFLClassifier(TwoClassBaseline):
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

    _settings_type = VaflSettings

    def _train(self, party: Party, settings: Any) -> VaflShard:
        return train(party, settings)

    def _predict(self, party: Party, shard: VaflShard) -> Array | None:
        return predict(party, shard)

    def _fit(self, X: Any, y: Any, weights: Array, targets: Array) -> Self:
        super()._fit(X, y, weights, targets)
        server = self.shards_[self.settings_.label_parties[0]]
        self.trace_ = list(server.trace)
        self.updates_ = {name: server.order.count(name) for name in self.shards_}
        return self
