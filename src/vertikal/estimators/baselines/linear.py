"""Linear classifiers of the papers' rivals: AFSGD-VP, AFSVRG-VP, AsySQN, FD-SVRG and FDML.

All of them hold labels at every party, and learn w_ℓ of their own columns there. They share one
program and one loop (`algorithms.linear`); the published ones send partial products in the clear,
these sum them under pads, and the ledger says who learns what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from vertikal.algorithms.linear.settings import LinearSettings, Method
from vertikal.algorithms.linear.training import LinearShard, predict, train
from vertikal.errors import InputError
from vertikal.estimators.base import FederatedEstimator
from vertikal.estimators.tasks import FederatedClassifier
from vertikal.party.party import Labels, digest

Array = npt.NDArray[Any]


@dataclass(eq=False, repr=False, kw_only=True)
class LinearClassifier(FederatedClassifier, FederatedEstimator):
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
    class_weight: Mapping[Any, float] | str | None = None

    method: ClassVar[Method]
    _settings_type = LinearSettings

    def _fit(self, X: Any, y: Any, weights: Array, targets: Array) -> Self:
        """Train on checked input; ``targets`` (rows, 1), ``weights`` (rows,)."""
        if targets.shape[1] != 1:
            raise InputError.of("y", "of two classes", f"{targets.shape[1]} classes")
        assigned = self._assigned()
        tables = self._tables(X, assigned, varying=False)
        base, seed = self._randomness()
        names = tuple(tables)
        settings = self._settings(
            LinearSettings, names, method=self.method, seed=seed, label_parties=names
        )
        outcome = self._run(
            tables,
            settings.label_parties,
            digest(settings),
            Labels(targets, weights),
            base,
            lambda party: train(party, settings),
        )
        self.shards_: Mapping[str, LinearShard] = dict(outcome.results)
        self.ledger_, self.report_ = outcome.ledger, outcome.report
        self.settings_, self.columns_ = settings, assigned
        self.objective_ = list(self.shards_[names[0]].objective)
        self.updates_ = {name: shard.updates for name, shard in self.shards_.items()}
        return self

    def _decide(self, X: Any) -> Array:
        """f of each row, (rows, 1): a secure sum over all parties."""
        check_is_fitted(self)
        results = self._run_joint(
            X,
            self.columns_,
            self.settings_.label_parties,
            digest(self.settings_),
            lambda party: predict(party, self.shards_[party.name]),
        )
        return np.asarray(results[self.settings_.label_parties[0]])


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
