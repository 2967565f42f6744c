"""KernelClassifier and KernelRegressor, which choose their own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from vertikal.algorithms.kernel_machine.settings import Values
from vertikal.algorithms.tuned.algorithm import KERNEL
from vertikal.algorithms.tuned.settings import KernelSettings, refuse_sealed
from vertikal.algorithms.tuned.shard import Trial, TunedShard
from vertikal.data.column_checks import Bounds
from vertikal.data.tables import Table
from vertikal.estimators.base import FederatedEstimator
from vertikal.estimators.columns import with_dealer
from vertikal.estimators.frames import Missing
from vertikal.estimators.tasks import FederatedClassifier, FederatedRegressor
from vertikal.parameters import read_field
from vertikal.party.party import Labels, digest

Array = npt.NDArray[Any]


@dataclass(eq=False, repr=False, kw_only=True)
class TunedKernelEstimator(FederatedEstimator):
    """The base of `KernelClassifier` and `KernelRegressor`; see there."""

    missing: Missing = "indicator"
    n_components: int | Literal["auto"] = "auto"
    budget: int | str = "1GB"
    disclosure: Literal["open", "values"] | Values = "open"

    _settings_type = KernelSettings

    def _fit(self, X: Any, y: Any, weights: Array, targets: Array) -> Self:
        """Train on checked input; ``targets`` (rows, outputs), ``weights`` (rows,)."""
        assigned, bounds = self._without_constants(X, self._assigned())
        tables = self._tables(X, assigned, bounds)
        base, seed = self._randomness()
        drawn = {"outputs": targets.shape[1], "seed": seed, "regression": self._regression}
        settings = self._settings(KernelSettings, tuple(tables), **drawn)
        settings.check_rows(len(targets))
        outcome = self._run(
            tables,
            settings.label_parties,
            digest(settings),
            Labels(targets, weights),
            base,
            lambda party: KERNEL.train(party, settings),
        )
        self.shards_: Mapping[str, TunedShard] = dict(outcome.results)
        self.ledger_ = outcome.ledger
        self.report_ = outcome.report
        self.settings_ = settings
        self.columns_ = assigned
        self._leader = settings.label_parties[0]
        leader = self.shards_[self._leader]
        self.search_: list[Trial] = list(leader.trials)
        self.n_components_ = leader.n_components
        self.rounds_ = leader.rounds
        self.alpha_ = leader.training.penalty
        self.n_iter_ = leader.training.iterations
        self.relevance_ = {
            name: shard.column_relevance() for name, shard in self.shards_.items() if shard.columns
        }
        remarks = (shard.encoding.remarks for shard in self.shards_.values())
        self._warn_of_columns([remark for some in remarks for remark in some])
        return self

    def _decide(self, X: Any) -> Array:
        """f of each row, (rows, outputs): the joint prediction of all parties by secure sums."""
        check_is_fitted(self)
        results = self._run_joint(
            X,
            self.columns_,
            self.settings_.label_parties,
            digest(self.settings_),
            lambda party: KERNEL.predict(party, self.shards_[party.name]),
        )
        return np.asarray(results[self._leader])

    def _tables(
        self, X: Any, assigned: Mapping[str, list[int]], bounds: Bounds | None = None
    ) -> dict[str, Table]:
        """Each party's own table; a dealer that is none of the parties joins without columns."""
        tables = super()._tables(X, assigned, bounds)
        refuse_sealed(self.disclosure)
        level = read_field(KernelSettings, "disclosure", self.disclosure)
        dealer = level.dealer if isinstance(level, Values) else None
        return with_dealer(tables, dealer)


@dataclass(eq=False, repr=False, kw_only=True)
class KernelClassifier(FederatedClassifier, TunedKernelEstimator):
    """A kernel machine of several parties that needs no tuning.

    Each party encodes its own columns. The parties learn together how much each column matters
    (relevance), on a part of the rows; the label party chooses bandwidths of a Gaussian and a
    Laplace kernel, the penalty and the number of directions on rows held out, and then trains on
    all rows with the logistic loss.

    Parameters
    ----------
    parties : mapping of names to columns, a number of parties, or a function, default 2
        Columns by name (data frames) or number; "bank_*" are those that begin with "bank_". A
        number cuts the columns into runs. A function tells the party of a column's name.
    label_parties : None, int, name or sequence of names
        Who holds the labels: the first party, the first so many, or those named.
    disclosure : "open", "values" or `Values`
        Who sees the features: the label party as in the papers ("open"), or nobody ("values": the
        label party sees predictions of training rows, as often as all passes together may).
    n_components : int or "auto"
        Random directions, half of either kernel, of each of which cosine and sine are used. "auto"
        is 1,024, or 2,048 if rows held out get better by them; with "values" it is 2,048.
    budget : int or str, such as "1GB"
        Bytes that "auto" lets any one party send.
    missing : "indicator", "mean" or "refuse"
        Missing cells: filled in by the party that has the column, and marked in a column besides;
        filled in only; or an error. Text and categories of data frames become columns of 0 and 1.
    masking : "pads" or "trees"
    timeout : seconds
        How long any party waits for a message of another.
    random_state : int, RandomState or None
        Fixes the model, for tests and simulation (pads are fresh in every run and cancel). With
        None the parties' secrets come from the operating system.
    verbose : 0, 1 or an observer
        1 shows what is tried, and its loss on the rows held out.
    class_weight : None, "balanced" or a mapping of classes to weights

    Attributes
    ----------
    classes_ : the class labels
    search_ : what was tried, in order (`Trial`: bandwidths, directions, penalty, loss)
    relevance_ : how much each column matters, by party and column; each owner sees its own only
    n_components_, rounds_, alpha_ : what was chosen
    ledger_ : who received what, how much, and what it can learn from it
    report_ : seconds and bytes by stage and party (`report_.seconds`, `report_.bytes_sent`)
    shards_ : what each party keeps of the model, by name
    n_iter_, columns_, settings_

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vertikal import KernelClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KernelClassifier(parties=3, n_components=128, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    class_weight: Mapping[Any, float] | str | None = None

    loss = "logistic"  # not a parameter


@dataclass(eq=False, repr=False, kw_only=True)
class KernelRegressor(FederatedRegressor, TunedKernelEstimator):
    """Regression by the kernel machine that needs no tuning; the loss is the square loss.

    The label parties standardise the targets, and predictions come back in the targets' own unit.

    Parameters
    ----------
    parties, label_parties, disclosure, n_components, budget, missing, masking
        As those of `KernelClassifier`.
    timeout, random_state, verbose
        As those of `KernelClassifier`.

    Attributes
    ----------
    search_, relevance_, n_components_, rounds_, alpha_, ledger_, report_, shards_, n_iter_
        As those of `KernelClassifier`; so are columns_ and settings_.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from vertikal import KernelRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelRegressor(parties=2, n_components=128, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """
