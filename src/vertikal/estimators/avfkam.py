"""AVFKAMClassifier: a federated kernel classifier that maximises the area under the ROC curve."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from vertikal.algorithms.kernel_machine import avfkam
from vertikal.algorithms.kernel_machine.avfkam_settings import AvfkamSettings
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.errors import InputError
from vertikal.estimators.base import plain
from vertikal.estimators.federated import FederatedKernelEstimator
from vertikal.estimators.run_report import run_page
from vertikal.estimators.simulation import Outcome
from vertikal.files import move_over
from vertikal.party.clock import Observer
from vertikal.party.party import Party

Array = npt.NDArray[Any]

FEW_ROWS = 10
"""With fewer rows of a class than these a user is warned."""


class AVFKAMClassifier(ClassifierMixin, FederatedKernelEstimator):
    """A kernel classifier for imbalanced labels, trained on pairs of rows by several parties.

    It ranks: the loss is over pairs of a positive and a negative row, so that the area under the
    ROC curve, which does not depend on how rare the positives are, is what is learned. The second
    of the two classes, in sorted order, is the positive one.

    Parameters
    ----------
    parties, label_parties, kernel, bandwidth, n_components, feature_map, scale, ring_bits
        As for `FDSKLClassifier`; so are disclosure, helper, dealer, hidden_bits, max_passes,
        masking, directions, cache_size, tol, max_iter, timeout, random_state and verbose.
    alpha : number or "auto"
        λ of mean l + λ/2 ‖f‖². "auto" is half the loss's largest curvature over the number of
        rows of the smaller class: 1 over it for the squared hinge loss.
    loss : "squared_hinge", "square" or "logistic"
        The loss of a pair. "exact" sums the first two over all pairs, by sorting; the logistic one
        over all while they are few (4 million), else over so many drawn at random.
    solver : "exact" or "dsg"
        "dsg" is the paper's triply stochastic gradient.
    step_size, steps, samples, features, precondition
        For "dsg": γ, the number of steps of all label parties together (default: each direction
        once), pairs and directions per step (1 and 1 are the paper's rule).
    schedule : "async" or "sync"
        For "dsg" with several label parties: "async" is AVFKAM, nobody waits for another's step;
        "sync" is VFKAM, they take turns.
    max_staleness : int
        For "async": τ, how many updates of the others may lie between a party's reading of f and
        its next reading; who would exceed it waits for the slower party.
    allow_missing : bool
        For "async": whether the others finish without a label party that vanishes.
    validation : share of the rows within [0, 0.5]
        Held out of the training, by class: f is calibrated on them, the threshold is chosen on
        them, and "dsg" draws its curve of the AUC on them. With 0, or with fewer than ten such rows
        in a class, all rows train, and f is calibrated on these.
    threshold : probability within (0, 1), "balanced" or "f1"
        Above which `predict` says the second class: a probability, or what is best for the balanced
        accuracy or the F1 score of the rows that f is calibrated on.

    Attributes
    ----------
    classes_, ledger_, report_, shards_, bandwidth_, alpha_, n_iter_, objective_, columns_ and
    settings_ are as for `FDSKLClassifier`.
    pairs_ : which pairs the exact solver summed over, in words
    calibration_ : slope and intercept that turn f into log-odds
    threshold_ : the probability above which a row is of the second class
    curve_ : for "dsg", points of seconds, updates and AUC on the held-out rows
    updates_, staleness_ : for "dsg", by label party, its updates, and how many of them were how old
    missing_ : label parties that vanished

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vertikal import AVFKAMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AVFKAMClassifier(parties=3, scale="standard", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _settings_type = AvfkamSettings

    def __init__(
        self,
        parties: int | Mapping[str, Any] = 2,
        *,
        label_parties: int | str | list[str] | tuple[str, ...] | None = None,
        kernel: str = "gaussian",
        bandwidth: float | Literal["median", "mean"] = "median",
        n_components: int = 2048,
        alpha: float | Literal["auto"] = "auto",
        loss: str = "squared_hinge",
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
        value_bits: int = 6,
        max_passes: int | None = None,
        scale: str | None = None,
        ring_bits: int | Literal["auto"] = "auto",
        masking: str = "pads",
        directions: str = "private",
        schedule: str = "async",
        max_staleness: int = 256,
        allow_missing: bool = False,
        cache_size: int | str | None = None,
        tol: float = 1e-3,
        max_iter: int = 200,
        timeout: float = 300.0,
        random_state: Any = None,
        verbose: int | bool | Observer = 0,
        validation: float = 0.1,
        threshold: float | str = 0.5,
    ) -> None:
        super().__init__(
            parties,
            label_parties=label_parties,
            kernel=kernel,
            bandwidth=bandwidth,
            n_components=n_components,
            alpha=alpha,
            loss=loss,
            solver=solver,
            step_size=step_size,
            steps=steps,
            samples=samples,
            features=features,
            precondition=precondition,
            feature_map=feature_map,
            disclosure=disclosure,
            helper=helper,
            dealer=dealer,
            hidden_bits=hidden_bits,
            value_bits=value_bits,
            max_passes=max_passes,
            scale=scale,
            ring_bits=ring_bits,
            masking=masking,
            directions=directions,
            schedule=schedule,
            max_staleness=max_staleness,
            allow_missing=allow_missing,
            cache_size=cache_size,
            tol=tol,
            max_iter=max_iter,
            timeout=timeout,
            random_state=random_state,
            verbose=verbose,
        )
        self.validation = validation
        self.threshold = threshold

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X (rows, columns) and labels y of two classes."""
        X, y = self._validate(X, y, reset=True)
        check_classification_targets(y)
        weights = self._weights(sample_weight, X)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise InputError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}: y must hold two classes, got {len(self.classes_)}; "
                "use FDSKLClassifier, or sklearn.multiclass.OneVsRestClassifier around this one"
            )
        counts = np.bincount(numbers[weights > 0], minlength=2)
        named = dict(zip(self.classes_.tolist(), counts.tolist(), strict=False))
        if len(self.classes_) < 2 or not counts.all():
            raise InputError(
                "y must hold rows (of positive weight) of two classes, got rows by class "
                f"{named}: the AUC is made of pairs"
            )
        if counts.min() < FEW_ROWS:
            warnings.warn(
                f"a class has fewer than {FEW_ROWS} rows, too few to learn or to calibrate from: "
                f"got rows by class {named}",
                UserWarning,
                stacklevel=2,
            )
        return self._fit(X, y, weights, np.where(numbers[:, None] == 1, 1.0, -1.0))

    def decision_function(self, X: Any) -> Array:
        """The log-odds of the second class above those of the threshold, (rows,).

        With ``disclosure="sealed"`` f as it is, good to rank rows by.
        """
        log_odds = self._decide(X)[:, 0]
        return np.asarray(log_odds - self._cut)

    def predict(self, X: Any) -> Array:
        """The class of each row."""
        self._check_calibrated()
        above = self.decision_function(X) > 0
        return np.asarray(self.classes_[above.astype(int)])

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities (rows, 2)."""
        self._check_calibrated()
        chances = expit(self._decide(X))
        return np.concatenate((1 - chances, chances), axis=1)

    def _check_calibrated(self) -> None:
        check_is_fitted(self)
        if self.settings_.seals:
            raise InputError(
                "with disclosure='sealed' no prediction is opened to calibrate on; rank rows by "
                "decision_function, or set a threshold on it with rows of your own"
            )

    def write_report(self, path: str | Path) -> Path:
        """Write the curves of the run, the ledger and the settings as one HTML page."""
        check_is_fitted(self)
        page = run_page(
            "AVFKAM: a training run",
            msgspec.structs.asdict(self.settings_),
            {name: self.shards_[name].training for name in self.settings_.label_parties},
            self.ledger_,
            self.report_,
        )
        move_over(Path(path), page.encode(), mode=0o666)
        return Path(path)

    def _train(self, party: Party, settings: FdsklSettings) -> Shard:
        assert isinstance(settings, AvfkamSettings)
        return avfkam.train(party, settings)

    def _further_settings(self) -> dict[str, Any]:
        return {"validation": plain(self.validation), "threshold": plain(self.threshold)}

    def _keep(
        self, outcome: Outcome, settings: FdsklSettings, assigned: dict[str, list[int]]
    ) -> None:
        super()._keep(outcome, settings, assigned)
        leader = self.shards_[self._leader]
        trainings = {name: self.shards_[name].training for name in settings.label_parties}
        self.pairs_ = leader.training.pairs
        self.calibration_ = (float(leader.unit[0]), float(leader.constant[0]))
        self._cut = leader.threshold
        self.threshold_ = float(expit(leader.threshold))
        self.curve_ = [point for point in leader.training.moments if point.auc is not None]
        self.updates_ = {name: sum(t.staleness.values()) for name, t in trainings.items()}
        self.staleness_ = {name: t.staleness for name, t in trainings.items()}
