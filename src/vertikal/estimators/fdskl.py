"""FDSKLClassifier and FDSKLRegressor: federated kernel machines with scikit-learn's interface."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from vertikal.algorithms.algorithm import Fit
from vertikal.algorithms.kernel_machine.algorithm import FDSKL, OF_A_FIT, KernelMachine
from vertikal.algorithms.kernel_machine.settings import (
    FdsklSettings,
    Fourier,
    Landmarks,
    Sealed,
    Stochastic,
    Values,
)
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.compute.device.choice import DeviceName
from vertikal.compute.workers.cluster import Workers
from vertikal.data.column_checks import Bounds
from vertikal.data.encoding import EncodingKind
from vertikal.data.scaling import Scale
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.estimators.base import FederatedEstimator
from vertikal.estimators.columns import with_dealer
from vertikal.estimators.simulation import Outcome
from vertikal.estimators.tasks import FederatedClassifier, FederatedRegressor
from vertikal.parameters import read_field
from vertikal.party.party import Labels, Party, digest

Array = npt.NDArray[Any]


@dataclass(eq=False, repr=False, kw_only=True)
class FederatedKernelEstimator(FederatedEstimator):
    """The base of `FDSKLClassifier`, `FDSKLRegressor` and `AVFKAMClassifier`; see there.

    Defaults are those of `FdsklSettings`.
    """

    scale: Scale | EncodingKind | None = None
    kernel: str = "gaussian"
    bandwidth: float | str = "mean"
    n_components: int = 2048
    alpha: float | Literal["auto"] = "auto"
    solver: Literal["exact", "dsg"] | Stochastic = "exact"
    feature_map: Literal["fourier", "landmarks"] | Fourier | Landmarks = "fourier"
    disclosure: Literal["open", "values", "sealed"] | Values | Sealed = "open"
    cache_size: int | str | None = None
    device: DeviceName = "auto"
    workers: int | Workers | None = None
    tol: float = 1e-3
    max_iter: int = 200

    _algorithm: ClassVar[KernelMachine[Any]] = FDSKL
    _settings_type = FdsklSettings
    takes_label_parts: ClassVar[bool] = True

    def _fit(self, X: Any, y: Any, weights: Array, targets: Array, labelled_by: Any = None) -> Self:
        """Train on checked input; ``targets`` (rows, outputs), ``weights`` (rows,)."""
        assigned, bounds = self._without_constants(X, self._assigned())
        tables = self._tables(X, assigned, bounds)
        base, seed = self._randomness()
        drawn = {"outputs": targets.shape[1], "seed": seed}
        if self._regression:
            drawn |= {"regression": True, "loss": "square"}
        if labelled_by is not None:
            drawn["label_parts"] = True
        settings = self._settings(self._settings_type, tuple(tables), **drawn)
        settings.check_rows(len(targets))
        spare = self._algorithm.can_spare_label_parties(settings)
        self._check_trees(settings, spare=spare)
        self._warn_of_shared_directions(settings)
        labels = labels_by_party(Labels(targets, weights), settings.label_parties, labelled_by)
        several: list[tuple[Any, Fit]] = [
            (other, Fit(other._settings(self._settings_type, tuple(tables), **drawn), rows))
            for other, rows in getattr(self, "_several", ())
        ]

        def program(party: Party) -> Any:
            if several:
                return self._algorithm.fit_several(party, [fit for _, fit in several])
            return self._algorithm.train(party, settings)

        outcome = self._run(
            tables,
            settings.label_parties,
            digest(settings),
            labels,
            base,
            program,
            dispensable=settings.label_parties if spare else (),
        )
        for place, (other, fit) in enumerate(several):
            other._keep_one_of_several(self, outcome, place, fit.settings, assigned)
        if not several:
            self._keep(outcome, settings, assigned)
            self._warn_of_convergence(len(targets))
        return self

    def shares_features(self, other: FederatedKernelEstimator) -> bool:
        """Return True if one pass over the rows serves fits of both: only how they fit differs."""
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        differ = {name for name in mine if not _equal(mine[name], theirs.get(name))}
        return (
            type(self) is type(other)
            and differ <= set(OF_A_FIT)
            and read_field(FdsklSettings, "disclosure", self.disclosure) == "open"
            and read_field(FdsklSettings, "solver", self.solver) == "exact"
            and self.cache_size is None
        )

    def fit_several(
        self, X: Any, y: Any, others: Sequence[tuple[Self, Array]], sample_weight: Any = None
    ) -> None:
        """Fit other estimators that share features with this one, each on some of the rows.

        ``others`` are estimators, each with the rows (rows,) bool that it is fitted on. Phases of
        all rows are summed once. An estimator then predicts just the rows that it was not fitted
        on, and only whole: whatever X it is given.
        """
        self._several = tuple(others)
        try:
            self.fit(X, y, sample_weight)
        finally:
            del self._several

    def _keep_one_of_several(
        self,
        first: FederatedKernelEstimator,
        outcome: Outcome,
        place: int,
        settings: FdsklSettings,
        assigned: dict[str, list[int]],
    ) -> None:
        """Set the fitted attributes after fits that shared features with ``first``."""
        for name in ("n_features_in_", "feature_names_in_", "classes_", "preparations_"):
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))
        fitted = {name: results[place] for name, results in outcome.results.items()}
        shards = {name: one.shard for name, one in fitted.items()}
        self._keep(replace(outcome, results=shards), settings, assigned)
        self._held_out = fitted[self._leader].held_out

    def _keep(
        self, outcome: Outcome, settings: FdsklSettings, assigned: dict[str, list[int]]
    ) -> None:
        """Set the fitted attributes."""
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

    def _decide(self, X: Any) -> Array:
        """f of each row, (rows, outputs): the joint prediction of all parties by secure sums."""
        check_is_fitted(self)
        known: Array | None = getattr(self, "_held_out", None)
        if known is not None:
            rows = X.shape[0] if hasattr(X, "shape") else len(X)
            if rows != len(known):
                raise InputError.of("X", f"the {len(known)} rows it was not fitted on", rows)
            return known
        results = self._run_joint(
            X,
            self.columns_,
            self.settings_.label_parties,
            digest(self.settings_),
            lambda party: self._algorithm.predict(party, self.shards_[party.name]),
        )
        return np.asarray(results[self._leader])

    def _tables(
        self, X: Any, assigned: Mapping[str, list[int]], bounds: Bounds | None = None
    ) -> dict[str, Table]:
        """Each party's own table; a dealer that is none of the parties joins without columns."""
        tables = super()._tables(X, assigned, bounds)
        level = read_field(FdsklSettings, "disclosure", self.disclosure)
        dealer = level.dealer if isinstance(level, Values | Sealed) else None
        return with_dealer(tables, dealer)

    def _check_trees(self, settings: FdsklSettings, *, spare: bool) -> None:
        """Refuse the papers' trees where there are no two, or where they protect nothing."""
        if self.masking != "trees":
            return
        if settings.hides:
            raise InputError.of("masking", f"'pads' with disclosure={settings.level!r}", "trees")
        if len(settings.label_parties) == 2:
            raise InputError.of(
                "masking", "'pads' for two label parties (one tree is all there is)", "trees"
            )
        if spare:
            raise InputError.of("masking", "'pads' with allow_missing=True", "trees")

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

    def _warn_of_shared_directions(self, settings: FdsklSettings) -> None:
        if settings.shares_directions:
            warnings.warn(
                "directions='shared' lets a label party recover the differences between any two "
                "rows of the other parties; it is here to reproduce the papers, not for real data",
                UserWarning,
                stacklevel=4,
            )


def labels_by_party(
    labels: Labels, label_parties: tuple[str, ...], labelled_by: Any
) -> Labels | dict[str, Labels]:
    """Give each label party the labels of its rows; ``labelled_by`` (rows, label parties)."""
    if labelled_by is None:
        return labels
    known = np.asarray(labelled_by)
    shape = (len(labels.weights), len(label_parties))
    if known.dtype != bool or known.shape != shape:
        raise InputError.of(
            "labelled_by",
            f"a table of booleans, {shape[0]} rows by {shape[1]} label parties",
            f"{known.dtype} {known.shape}",
        )
    return {
        name: Labels(np.where(mine[:, None], labels.targets, 0.0), labels.weights * mine, mine)
        for name, mine in zip(label_parties, known.T, strict=True)
    }


def _equal(one: Any, other: Any) -> bool:
    """Return True if two parameters are the same; arrays in them only if both are one object."""
    try:
        return one is other or bool(one == other)
    except ValueError:
        return False


@dataclass(eq=False, repr=False, kw_only=True)
class FDSKLClassifier(FederatedClassifier, FederatedKernelEstimator):
    """A kernel classifier trained by several parties that hold different columns of the same rows.

    All parties are simulated in this process; each sees its own columns, and the label parties the
    labels. Several classes are learned one against the rest.

    Parameters
    ----------
    parties : mapping of names to columns, a number of parties, or a function, default 2
        Columns by name (data frames) or number; "bank_*" are those that begin with "bank_". A
        number cuts the columns into runs. A function tells the party of a column's name.
    label_parties : names, or a number, default: the first party
        The parties that hold the labels. Several of them share the coefficients.
    kernel : "gaussian", "laplace", "matern" (3/2), "matern12", "matern32", "matern52" or "linear"
    bandwidth : number, "mean" or "median", or a multiple such as "0.5 mean"
        σ of exp(−‖x−x'‖²/2σ²). "mean" takes σ² = half the mean squared distance of all pairs of
        rows, for which each party adds one number about its own columns; "median" half the median
        of a sample of pairs, whose distances the label party sees (``disclosure="open"`` only).
    n_components : int
        D, the number of random directions or landmarks. Each gives one feature, and with
        ``Fourier(functions="pair")`` two.
    alpha : number or "auto"
        λ of (1/n) Σ L + λ/2 ‖f‖². "auto" is 0.1/n, what C = 10 means to `SVC`
        and `LogisticRegression`.
    loss : "logistic", "square" or "smooth_hinge"
    solver : "exact", "dsg" or `Stochastic(...)`
        "exact" solves the regularised problem on the drawn features to ``tol``; "dsg" is the
        paper's doubly stochastic gradient, with the options of `Stochastic`.
    feature_map : "fourier", "landmarks", `Fourier(...)` or `Landmarks(...)`
        Random Fourier features, or Nyström's method with ``n_components`` training rows as
        landmarks (Gaussian kernel only): a lower error for the same number, and another disclosure.
    disclosure : "open", "values", "sealed", `Values(...)` or `Sealed(...)`
        Who sees the features: "open" shows the summed phases to the label party that owns them;
        "values" shows nobody a phase or a feature, and the label party only f on the training rows
        and the summed gradient in each pass; "sealed" opens nothing but predictions (square loss,
        one label party, ``max_iter`` steps of fixed size).
    scale : None, "standard", "minmax", "max", "smooth", "quantile" or "normal"
        Each party's own scaling of its columns, kept in its shard. The last three bend columns, so
        that long tails and frequent values do not drown the rest.
    missing : "refuse", "mean" or "indicator"
        Missing cells: an error, or filled in by the party that has the column, with the mean of its
        training rows, and with "indicator" marked in a column besides. Text and categories of data
        frames become columns of 0 and 1, at each party by itself.
    masking : "pads" or "trees"
        How sums are masked: one-time pads, or the paper's two trees (for reproduction).
    cache_size : bytes, a text like "2GB", or None
        How many bytes of phases a label party may keep; rows beyond are summed again in each pass.
    device : "auto", "cpu" or "cuda"
        "cuda" computes phases and products on the GPU (extra ``gpu``), with the same results to
        rounding; "auto" does where torch finds one and rows times directions are 2^26 or more.
    workers : int, `Workers(...)` or None
        Workers of each party, actors of Ray (extra ``ray``), over which ``fit`` spreads the party's
        rows with their phases and products; None computes in threads of this process.
    tol, max_iter : number, int
        When the exact solver stops; sealed, ``max_iter`` is how many steps it takes.
    timeout : seconds
        How long any party waits for a message of another.
    random_state : int, RandomState or None
        Fixes the model, for tests and simulation (pads are fresh in every run and cancel). With
        None the parties' secrets come from the operating system.
    verbose : 0, 1 or an observer
    class_weight : None, "balanced" or a mapping of classes to weights

    Attributes
    ----------
    classes_ : the class labels
    ledger_ : who received what, how much, and what it can learn from it
    report_ : seconds and bytes by stage and party (`report_.seconds`, `report_.bytes_sent`)
    shards_ : what each party keeps of the model, by name
    missing_ : label parties that vanished
    preparations_ : each party's own preparation of a frame's columns, if it was prepared
    bandwidth_, alpha_, n_iter_, objective_, columns_, settings_

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vertikal import FDSKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = FDSKLClassifier(parties=3, scale="standard", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    loss: str = "logistic"
    class_weight: Mapping[Any, float] | str | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class FDSKLRegressor(FederatedRegressor, FederatedKernelEstimator):
    """Kernel regression trained by several parties that hold different columns of the same rows.

    The loss is the square loss. The label parties standardise the targets, and predictions come
    back in the targets' own unit.

    Parameters
    ----------
    parties, label_parties, kernel, bandwidth, n_components, alpha, solver, feature_map, disclosure
        As those of `FDSKLClassifier`.
    scale, missing, masking, cache_size, device, workers, tol, max_iter, timeout
        As those of `FDSKLClassifier`.
    random_state, verbose
        As those of `FDSKLClassifier`.

    Attributes
    ----------
    ledger_, report_, shards_, missing_, bandwidth_, alpha_, n_iter_, objective_, columns_
        As those of `FDSKLClassifier`; so is settings_.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from vertikal import FDSKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = FDSKLRegressor(parties=2, scale="standard", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """
