"""FederatedSearchCV: a cross-validated search of parameters on few passes over the rows.

`sklearn.model_selection.GridSearchCV` fits each combination on each fold by itself, and each fit
sums the phases of its rows anew. Phases depend neither on the penalty nor on the labels: here one
pass serves all folds of all combinations that differ in how they fit only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from vertikal.errors import InputError
from vertikal.estimators.base import FederatedEstimator
from vertikal.estimators.fdskl import FederatedKernelEstimator

Array = npt.NDArray[Any]


def _has(name: str) -> Any:
    """Return a check that the estimator has this method."""

    def check(search: FederatedSearchCV) -> bool:
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return check


@dataclass(eq=False, repr=False)
class FederatedSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Choose an estimator's parameters by cross-validation, and fit the best on all rows.

    It takes what `GridSearchCV` takes. With `FDSKLClassifier`, `FDSKLRegressor` and
    `AVFKAMClassifier`, open features and the exact solver, combinations that differ only in
    ``alpha``, ``loss``, ``tol``, ``max_iter``, ``validation`` or ``threshold`` share one pass over
    the rows with all of their folds; columns are then scaled, and the bandwidth is found, on all
    rows. Other combinations and estimators are fitted fold by fold.

    Parameters
    ----------
    estimator : an estimator of vertikal
    param_grid : mapping of parameters to lists of values, or a list of such mappings
    cv : int, splitter or iterable, default 5
        As of `GridSearchCV`: folds of an integer have the same share of each class.
    scoring : str, callable or None
        As of `GridSearchCV`; None is the estimator's own score.

    Attributes
    ----------
    best_params_, best_score_, best_index_, best_estimator_, cv_results_, n_splits_, classes_
        As of `GridSearchCV`.
    passes_ : number of passes over the rows that the search took, the last fit apart

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vertikal import FDSKLClassifier, FederatedSearchCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = FDSKLClassifier(3, scale="standard", n_components=128, random_state=0)
    >>> search = FederatedSearchCV(model, {"alpha": [1e-2, 1e-3, 1e-4]}, cv=3).fit(X, y)
    >>> search.passes_
    1
    """

    estimator: FederatedEstimator
    param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
    cv: Any = 5
    scoring: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags = inner.input_tags
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Try all combinations on rows X and labels y, and fit the best on all of them."""
        combinations = list(ParameterGrid(self.param_grid))
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        folds = list(cv.split(X, y))
        weights = None if sample_weight is None else np.asarray(sample_weight)
        scorer = check_scoring(self.estimator, scoring=self.scoring)
        scores = np.full((len(combinations), len(folds)), np.nan)
        self.passes_ = 0
        for group in self._groups(combinations):
            models = self._fitted(
                group, [combinations[one] for one in group], folds, (X, y, weights)
            )
            for (one, fold), model in models.items():
                test = folds[fold][1]
                scores[one, fold] = scorer(model, _safe_indexing(X, test), _safe_indexing(y, test))
        self.n_splits_ = len(folds)
        self.cv_results_ = _results(combinations, scores)
        means = self.cv_results_["mean_test_score"]
        if not np.isfinite(means).any():
            raise InputError.of("scoring", "one that is a number for some combination", means)
        self.best_index_ = int(np.nanargmax(means))
        self.best_params_ = combinations[self.best_index_]
        self.best_score_ = float(means[self.best_index_])
        self.best_estimator_ = self._made(self.best_params_).fit(X, y, **_weighted(weights))
        if hasattr(self.best_estimator_, "classes_"):
            self.classes_ = self.best_estimator_.classes_
        self.n_features_in_ = self.best_estimator_.n_features_in_
        return self

    def _made(self, params: Mapping[str, Any]) -> Any:
        return clone(self.estimator).set_params(**clone(dict(params), safe=False))

    def _groups(self, combinations: Sequence[Mapping[str, Any]]) -> list[list[int]]:
        """Put combinations together that share features."""
        groups: list[list[int]] = []
        made = [self._made(one) for one in combinations]
        for number, one in enumerate(made):
            for group in groups:
                if _share(made[group[0]], one):
                    group.append(number)
                    break
            else:
                groups.append([number])
        return groups

    def _fitted(
        self,
        numbers: Sequence[int],
        combinations: Sequence[Mapping[str, Any]],
        folds: Sequence[tuple[Array, Array]],
        given: tuple[Any, Any, Array | None],
    ) -> dict[tuple[int, int], Any]:
        """Fit combinations of one group on all folds; estimators by combination and fold."""
        models = {
            (number, fold): self._made(one)
            for number, one in zip(numbers, combinations, strict=True)
            for fold in range(len(folds))
        }
        first = next(iter(models.values()))
        X, y, weights = given
        rows = len(y)
        # Repeated or nested rows of a splitter cannot be told by which rows a fit leaves out.
        plain = all(_is_partition(train, test, rows) for train, test in folds)
        if plain and _share(first, first):
            masks = [np.isin(np.arange(rows), train) for train, _ in folds]
            others = [(one, masks[fold]) for (_, fold), one in models.items()]
            first.fit_several(X, y, others, weights)
            self.passes_ += 1
            return models
        for (_, fold), one in models.items():
            train = folds[fold][0]
            some = _weighted(None if weights is None else weights[train])
            one.fit(_safe_indexing(X, train), _safe_indexing(y, train), **some)
            self.passes_ += 1
        return models

    @available_if(_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Array:
        """Predict by the best estimator."""
        return np.asarray(self._best().predict(X))

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Estimate probabilities by the best estimator."""
        return np.asarray(self._best().predict_proba(X))

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Return f of the best estimator."""
        return np.asarray(self._best().decision_function(X))

    def score(self, X: Any, y: Any) -> float:
        """Score the best estimator by ``scoring``."""
        best = self._best()
        return float(check_scoring(best, scoring=self.scoring)(best, X, y))

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_


def _weighted(weights: Array | None) -> dict[str, Array]:
    return {} if weights is None else {"sample_weight": weights}


def _share(one: Any, other: Any) -> bool:
    return isinstance(one, FederatedKernelEstimator) and one.shares_features(other)


def _is_partition(train: Array, test: Array, rows: int) -> bool:
    """Return True if each row is either fitted on or tested, the tested ones in their order."""
    both = np.concatenate([train, test])
    return len(both) == rows == len(np.unique(both)) and bool((np.diff(test) > 0).all())


def _results(combinations: Sequence[Mapping[str, Any]], scores: Array) -> dict[str, Any]:
    """Write scores (combinations, folds) as `GridSearchCV` does."""
    names = dict.fromkeys(name for one in combinations for name in one)
    means = scores.mean(axis=1)
    order = np.where(np.isnan(means), -np.inf, means)
    return {
        **{f"param_{name}": [one.get(name) for one in combinations] for name in names},
        "params": list(combinations),
        **{f"split{fold}_test_score": scores[:, fold] for fold in range(scores.shape[1])},
        "mean_test_score": means,
        "std_test_score": scores.std(axis=1),
        "rank_test_score": np.array([1 + int((order > value).sum()) for value in order], np.int32),
    }
