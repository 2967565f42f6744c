"""AVFKAMClassifier: a federated kernel classifier that maximises the area under the ROC curve."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from vertikal.algorithms.kernel_machine.algorithm import AVFKAM
from vertikal.algorithms.kernel_machine.settings import AvfkamSettings, FdsklSettings
from vertikal.errors import InputError
from vertikal.estimators.fdskl import FederatedKernelEstimator
from vertikal.estimators.simulation import Outcome

Array = npt.NDArray[Any]

FEW_ROWS = 10
"""With fewer rows of a class than these a user is warned."""


@dataclass(eq=False, repr=False, kw_only=True)
class AVFKAMClassifier(ClassifierMixin, FederatedKernelEstimator):
    """A kernel classifier for imbalanced labels, trained on pairs of rows by several parties.

    It ranks: the loss is over pairs of a positive and a negative row, so that the area under the
    ROC curve, which does not depend on how rare the positives are, is what is learned. The second
    of the two classes, in sorted order, is the positive one.

    Parameters
    ----------
    parties : mapping of names to columns, a number of parties, or a function, default 2
        Columns by name (data frames) or number; "bank_*" are those that begin with "bank_". A
        number cuts the columns into runs. A function tells the party of a column's name.
    label_parties : names, or a number, default: the first party
        The parties that hold the labels. Several of them share the coefficients.
    kernel : "gaussian", "laplace", "matern" (3/2), "matern12", "matern32", "matern52" or "linear"
    bandwidth : number, "mean" or "median"
        σ, as in `FDSKLClassifier`.
    n_components : int
        D, the number of random features or landmarks.
    alpha : number or "auto"
        λ of mean l + λ/2 ‖f‖². "auto" is half the loss's largest curvature over the number of
        rows of the smaller class: 1 over it for the squared hinge loss.
    loss : "squared_hinge", "square" or "logistic"
        The loss of a pair. "exact" sums the first two over all pairs, by sorting; the logistic one
        over all while they are few (4 million), else over so many drawn at random.
    solver : "exact", "dsg" or `Stochastic(...)`
        "dsg" is the paper's triply stochastic gradient, with the options of `Stochastic`, of which
        ``batch_size`` counts pairs. With several label parties nobody waits for another's step
        (AVFKAM); with ``schedule="barrier"`` all step at once, then wait (VFKAM). It needs
        ``disclosure="open"`` and a cache for all rows: batches of pairs would show the labels.
    feature_map : "fourier", "landmarks", `Fourier(...)` or `Landmarks(...)`
        As in `FDSKLClassifier`.
    disclosure : "open", "values", "sealed", `Values(...)` or `Sealed(...)`
        Who sees the features, as in `FDSKLClassifier`. "sealed" takes the square loss, and f is not
        calibrated.
    validation : share of the rows within [0, 0.5]
        Held out of the training, by class: f is calibrated on them, the threshold is chosen on
        them, and "dsg" draws its curve of the AUC on them. With 0, or with fewer than ten such rows
        in a class, all rows train, and f is calibrated on these.
    threshold : probability within (0, 1), "balanced" or "f1"
        Above which `predict` says the second class: a probability, or what is best for the balanced
        accuracy or the F1 score of the rows that f is calibrated on.
    scale : None, "standard", "minmax", "max", "smooth", "quantile" or "normal"
        Each party's own scaling of its columns, kept in its shard. The last three bend columns, so
        that long tails and frequent values do not drown the rest.
    missing : "refuse", "mean" or "indicator"
        Missing cells: an error, or filled in by the party that has the column, with the mean of its
        training rows, and with "indicator" marked in a column besides. Text and categories of data
        frames become columns of 0 and 1, at each party by itself.
    masking : "pads" or "trees"
        How sums are masked: one-time pads, or the paper's two trees (for reproduction).
    device : "auto", "cpu" or "cuda"
        As that of `FDSKLClassifier`.
    workers : int, `Workers(...)` or None
        As that of `FDSKLClassifier`.
    cache_size : bytes, a text like "2GB", or None
        How many bytes of phases a label party may keep; rows beyond are summed again in each pass.
    tol, max_iter : number, int
        When the exact solver stops; sealed, ``max_iter`` is how many steps it takes.
    timeout : seconds
        How long any party waits for a message of another.
    random_state : int, RandomState or None
        Fixes the model, for tests and simulation; with None secrets come from the system.
    verbose : 0, 1 or an observer

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

    loss: str = "squared_hinge"
    validation: float = 0.1
    threshold: float | Literal["balanced", "f1"] = 0.5

    _algorithm = AVFKAM
    _settings_type = AvfkamSettings

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, labelled_by: Any = None) -> Self:
        """Train on rows X (rows, columns) and labels y of two classes.

        ``labelled_by`` (rows, label parties) is True where a label party can label a row, by
        default everywhere; a pair is of two rows that the same party can label.
        """
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
        targets = np.where(numbers[:, None] == 1, 1.0, -1.0)
        return self._fit(X, y, weights, targets, labelled_by)

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
