"""Linear classifiers of the papers' rivals: AFSGD-VP, AFSVRG-VP, AsySQN, FD-SVRG and FDML.

All of them hold labels at every party, and learn w_ℓ of their own columns there. They share one
program and one loop (`algorithms.linear`); the published ones send partial products in the clear,
these sum them under pads, and the ledger says who learns what.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy.typing as npt

from vertikal.algorithms.linear.settings import LinearSettings, Method
from vertikal.algorithms.linear.training import LinearShard, predict, train
from vertikal.estimators.baselines.two_classes import TwoClassBaseline
from vertikal.party.party import Party

Array = npt.NDArray[Any]


@dataclass(eq=False, repr=False, kw_only=True)
class LinearClassifier(TwoClassBaseline):
    """Base of the linear baselines: logistic regression with λ/2 ‖w‖², for two classes.

    Parameters
    ----------
    parties, masking, timeout, random_state, verbose, missing
        As those of `FDSKLClassifier`; every party holds the labels.
    alpha : number
        λ of (1/n) Σ L + λ/2 ‖w‖², the intercept included, as in the published code.
    step_size : number
        γ. The published scripts take 0.1 on LIBSVM's sets and 0.01 on tables of credit.
    epochs, epoch_steps : int
        Epochs, and steps of all parties together in each; variance is reduced once in an epoch.
    batch_size : int
        Rows of a step; the papers take one.
    max_staleness : int
        τ, as in `Stochastic`.

    Attributes
    ----------
    classes_, shards_, ledger_, report_, columns_, settings_
        As those of `FDSKLClassifier`.
    objective_ : the objective after each epoch
    updates_ : updates that each party made
    """

    loss: str = "logistic"
    alpha: float = 1e-4
    step_size: float = 0.1
    epochs: int = 10
    epoch_steps: int = 1000
    batch_size: int = 32
    max_staleness: int = 256

    method: ClassVar[Method]
    _settings_type = LinearSettings

    def _chosen_settings(self, names: tuple[str, ...], seed: int) -> LinearSettings:
        return self._settings(
            LinearSettings, names, method=self.method, seed=seed, label_parties=names
        )

    def _train(self, party: Party, settings: Any) -> LinearShard:
        return train(party, settings)

    def _predict(self, party: Party, shard: LinearShard) -> Array | None:
        return predict(party, shard)

    def _fit(self, X: Any, y: Any, weights: Array, targets: Array) -> Self:
        super()._fit(X, y, weights, targets)
        self.objective_ = list(self.shards_[self.settings_.label_parties[0]].objective)
        self.updates_ = {name: shard.updates for name, shard in self.shards_.items()}
        return self


@dataclass(eq=False, repr=False, kw_only=True)
class AFSGDVPClassifier(LinearClassifier):
    """AFSGD-VP (Gu et al. 2020): every party steps on its own columns, and waits for nobody."""

    method = "afsgd-vp"


@dataclass(eq=False, repr=False, kw_only=True)
class AFSVRGVPClassifier(LinearClassifier):
    """AFSVRG-VP (Gu et al. 2020): the same with gradients of reduced variance."""

    method = "afsvrg-vp"


@dataclass(eq=False, repr=False, kw_only=True)
class AsySQNClassifier(LinearClassifier):
    """AsySQN (Zhang et al. 2021): the same along a quasi-Newton direction of the party's block."""

    method = "asysqn"


@dataclass(eq=False, repr=False, kw_only=True)
class FDSVRGClassifier(LinearClassifier):
    """FD-SVRG (Zhang et al. 2018): all parties step together on the same rows, then wait."""

    method = "fd-svrg"


@dataclass(eq=False, repr=False, kw_only=True)
class FDMLClassifier(LinearClassifier):
    """FDML (Hu et al. 2019) with linear local models: nobody waits, and steps fall with √t."""

    method = "fdml"
