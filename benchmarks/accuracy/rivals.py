"""Learners on pooled columns that the federated ones are held against.

Each takes a table and its training and test rows and returns scores of the test rows and the
settings that it chose, on a hold-out of the training rows. Scores are (rows,) of the second class
or of the target, or (rows, classes).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.accuracy.ordinary_tables import OrdinaryTable

Array = npt.NDArray[Any]
Chosen = dict[str, Any]
Learner = Callable[[OrdinaryTable, Array, Array, int], tuple[Array, Chosen]]

HOLDOUT = 0.2
SVC_ROWS = 6_000
"""Training rows of SVC and SVR, whose time grows with their square."""
SVC_TRIES = 3_000
"""Training rows of these while their parameters are chosen."""
XRFM_ROWS = 6_000
"""Training rows of xRFM, whose time grows with their cube."""
XRFM_TRIES = 2_000
"""Training rows of xRFM while its bandwidth is chosen."""
XRFM_BANDWIDTHS = (3.0, 10.0, 30.0)
TRIES = 6
"""Settings of boosted trees that are tried, the defaults among them."""
MOST_TREES = 400
PATIENCE = 20


def quality(table: OrdinaryTable, rows: Array, scores: Array) -> float:
    """R², or the AUC; of several classes their mean, one against the rest, by their rows."""
    y = table.y[rows]
    if table.regression:
        return float(r2_score(y, scores))
    if scores.ndim == 1:
        return float(roc_auc_score(y, scores))
    counts = np.bincount(y, minlength=scores.shape[1])
    ranked = [c for c in range(scores.shape[1]) if 0 < counts[c] < len(y)]
    each = [roc_auc_score(y == c, scores[:, c]) for c in ranked]
    return float(np.average(each, weights=counts[ranked]))


def boosted_trees(
    table: OrdinaryTable, train: Array, test: Array, seed: int
) -> tuple[Array, Chosen]:
    """HistGradientBoosting with its defaults; categories are told by their type."""
    model = _trees(table, seed).fit(table.frame.iloc[train], table.y[train])
    return _scores(table, model, table.frame.iloc[test]), {}


def tuned_trees(table: OrdinaryTable, train: Array, test: Array, seed: int) -> tuple[Array, Chosen]:
    """The same, the best of a few settings drawn at random and the defaults, stopped in time."""
    fitting, held = _hold_out(table, train, seed)
    generator = np.random.default_rng(seed)
    tries: list[Chosen] = [{}] + [
        {
            "learning_rate": float(generator.choice([0.03, 0.06, 0.1])),
            "max_leaf_nodes": int(generator.choice([8, 16, 31, 63])),
            "min_samples_leaf": int(generator.choice([5, 20, 60])),
            "l2_regularization": float(generator.choice([0.0, 1.0, 10.0])),
            "max_features": float(generator.choice([0.4, 0.7, 1.0])),
        }
        for _ in range(TRIES - 1)
    ]
    best, chosen = -np.inf, tries[0]
    for settings in tries:
        model = _trees(table, seed, max_iter=MOST_TREES, early_stopping=True, **settings)
        model.set_params(n_iter_no_change=PATIENCE)
        model.fit(
            table.frame.iloc[fitting],
            table.y[fitting],
            X_val=table.frame.iloc[held],
            y_val=table.y[held],
        )
        found = _judge(table, held, _scores(table, model, table.frame.iloc[held]))
        if found > best:
            best, chosen = found, settings | {"max_iter": max(10, model.n_iter_ - PATIENCE)}
    model = _trees(table, seed, early_stopping=False, **chosen)
    model.fit(table.frame.iloc[train], table.y[train])
    return _scores(table, model, table.frame.iloc[test]), chosen


def vectors(table: OrdinaryTable, train: Array, test: Array, seed: int) -> tuple[Array, Chosen]:
    """SVC (for numbers SVR) with a Gaussian kernel on standardised columns; rows are capped."""
    X = standardised(table, train)
    train = train[:SVC_ROWS]
    fitting, held = _hold_out(table, train, seed)
    fitting = fitting[:SVC_TRIES]
    tries: list[Chosen] = [
        {"C": C, "gamma": factor / X.shape[1]}
        for C in (0.3, 3.0, 30.0)
        for factor in (0.1, 0.4, 1.5)
    ]
    kind = SVR if table.regression else SVC

    def fit(rows: Array, settings: Chosen) -> Any:
        scale = 1.0
        if table.regression:
            scale = float(table.y[train].std())
        return kind(cache_size=500, **settings).fit(X[rows], table.y[rows] / scale), scale

    def scores(fitted: Any, rows: Array) -> Array:
        model, scale = fitted
        if table.regression:
            return np.asarray(model.predict(X[rows]) * scale)
        return _spread(table, model, np.asarray(model.decision_function(X[rows])))

    found = [quality(table, held, scores(fit(fitting, settings), held)) for settings in tries]
    chosen = tries[int(np.argmax(found))]
    return scores(fit(train, chosen), test), chosen | {"rows": len(train)}


def linear(table: OrdinaryTable, train: Array, test: Array, seed: int) -> tuple[Array, Chosen]:
    """Logistic regression (for numbers ridge regression) on standardised columns."""
    X = standardised(table, train)
    fitting, held = _hold_out(table, train, seed)

    def fit(rows: Array, strength: float) -> Any:
        if table.regression:
            return Ridge(alpha=1 / strength).fit(X[rows], table.y[rows])
        return LogisticRegression(C=strength, max_iter=1000).fit(X[rows], table.y[rows])

    tries = (0.003, 0.03, 0.3, 3.0)
    found = [_judge(table, held, _scores(table, fit(fitting, C), X[held])) for C in tries]
    best = tries[int(np.argmax(found))]
    return _scores(table, fit(train, best), X[test]), {"C": best}


def xgboost(table: OrdinaryTable, train: Array, test: Array, seed: int) -> tuple[Array, Chosen]:
    """XGBoost, tuned as HistGradientBoosting is."""
    import xgboost as xgb

    kind = xgb.XGBRegressor if table.regression else xgb.XGBClassifier
    common = {"tree_method": "hist", "enable_categorical": True, "n_jobs": 1, "random_state": seed}
    fitting, held = _hold_out(table, train, seed)
    generator = np.random.default_rng(seed)
    tries: list[Chosen] = [{}] + [
        {
            "learning_rate": float(generator.choice([0.03, 0.06, 0.1])),
            "max_depth": int(generator.choice([3, 4, 6, 8])),
            "min_child_weight": float(generator.choice([1, 5, 20])),
            "subsample": float(generator.choice([0.6, 0.8, 1.0])),
            "colsample_bytree": float(generator.choice([0.5, 0.75, 1.0])),
            "reg_lambda": float(generator.choice([0.3, 1.0, 10.0])),
        }
        for _ in range(TRIES - 1)
    ]
    best, chosen = -np.inf, tries[0]
    for settings in tries:
        model = kind(n_estimators=MOST_TREES, early_stopping_rounds=PATIENCE, **common, **settings)
        watched = [(table.frame.iloc[held], table.y[held])]
        model.fit(table.frame.iloc[fitting], table.y[fitting], eval_set=watched, verbose=False)
        found = _judge(table, held, _scores(table, model, table.frame.iloc[held]))
        if found > best:
            best, chosen = found, settings | {"n_estimators": model.best_iteration + 1}
    model = kind(**common, **chosen).fit(table.frame.iloc[train], table.y[train])
    return _scores(table, model, table.frame.iloc[test]), chosen


def xrfm(table: OrdinaryTable, train: Array, test: Array, seed: int) -> tuple[Array, Chosen]:
    """Recursive feature machines (Beaglehole et al. 2025), the best of a few bandwidths.

    Rows are capped. The rows held out also choose how many rounds it takes, so it is not fitted
    again with them. Bandwidths are on the scale of distances, which few rows show as well.
    """
    from xrfm import xRFM

    X = standardised(table, train).astype(np.float32)
    train = train[:XRFM_ROWS]
    fitting, held = _hold_out(table, train, seed)
    centre, scale = 0.0, 1.0
    if table.regression:
        centre, scale = float(table.y[fitting].mean()), float(table.y[fitting].std())

    def targets(rows: Array) -> Array:
        if table.regression:
            return np.asarray((table.y[rows] - centre) / scale, np.float32)[:, None]
        return table.y[rows]

    def scores(model: Any, rows: Array) -> Array:
        if table.regression:
            return np.asarray(model.predict(X[rows])).ravel() * scale + centre
        shares = np.asarray(model.predict_proba(X[rows]))
        return shares[:, 1] if shares.shape[1] == 2 else shares

    def fit(rows: Array, bandwidth: float) -> Any:
        # All but the bandwidth is what it takes by default.
        settings = {
            "model": {
                "kernel": "l2_high_dim",
                "exponent": 1.0,
                "bandwidth": bandwidth,
                "diag": False,
                "bandwidth_mode": "constant",
            },
            "fit": {"reg": 1e-3, "iters": 5, "return_best_params": True},
        }
        model = xRFM(rfm_params=settings, random_state=seed, verbose=False)
        model.fit(X[rows], targets(rows), X[held], targets(held))
        return model

    tries = {one: fit(fitting[:XRFM_TRIES], one) for one in XRFM_BANDWIDTHS}
    chosen = max(tries, key=lambda one: _judge(table, held, scores(tries[one], held)))
    best = tries[chosen] if len(fitting) <= XRFM_TRIES else fit(fitting, chosen)
    return scores(best, test), {"bandwidth": chosen, "rows": len(train)}


RIVALS: dict[str, Learner] = {
    "trees": boosted_trees,
    "tuned trees": tuned_trees,
    "SVC": vectors,
    "linear": linear,
}
OPTIONAL: dict[str, Learner] = {"xgboost": xgboost, "xrfm": xrfm}


def installed_rivals() -> tuple[dict[str, Learner], list[str]]:
    """The rivals that are installed here, and the names of those that are not."""
    found = {name: one for name, one in OPTIONAL.items() if importlib.util.find_spec(name)}
    return RIVALS | found, [name for name in OPTIONAL if name not in found]


def standardised(table: OrdinaryTable, train: Array) -> Array:
    """Numbers only: categories one-hot, medians and indicators for missing cells, unit deviation.

    Everything is learned on the training rows.
    """
    categories = table.frame.select_dtypes("category")
    numbers = table.frame.drop(columns=list(categories)).astype(float)
    missing = numbers.isna()
    missing = missing.loc[:, missing.iloc[train].any()]
    filled = numbers.fillna(numbers.iloc[train].median())
    dummies = [
        pd.get_dummies(categories[name], dummy_na=True).to_numpy(float) for name in categories
    ]
    X = np.hstack([filled.to_numpy(), missing.to_numpy(float), *dummies])
    X = X[:, np.ptp(X[train], axis=0) > 0]
    return np.asarray(StandardScaler().fit(X[train]).transform(X))


def _trees(table: OrdinaryTable, seed: int, **settings: Any) -> Any:
    if table.regression:
        return HistGradientBoostingRegressor(random_state=seed, **settings)
    return HistGradientBoostingClassifier(random_state=seed, **settings)


def _hold_out(table: OrdinaryTable, train: Array, seed: int) -> tuple[Array, Array]:
    labels = None if table.regression else table.y[train]
    if labels is not None and np.bincount(labels)[np.unique(labels)].min() < 2:
        labels = None
    fitting, held = train_test_split(
        train, test_size=HOLDOUT, random_state=seed + 100, stratify=labels
    )
    return np.asarray(fitting), np.asarray(held)


def _scores(table: OrdinaryTable, model: Any, X: Any) -> Array:
    if table.regression:
        return np.asarray(model.predict(X))
    return _spread(table, model, np.asarray(model.predict_proba(X)))


def _spread(table: OrdinaryTable, model: Any, scores: Array) -> Array:
    """Scores of the second class, or one column per class, also of those that training lacked."""
    if table.y.max() == 1:
        return scores[:, 1] if scores.ndim == 2 else scores
    wide = np.full((len(scores), table.y.max() + 1), scores.min())
    wide[:, np.asarray(model.classes_, int)] = scores
    return wide


def _judge(table: OrdinaryTable, held: Array, scores: Array) -> float:
    """Hold-out quality, larger is better; of several classes the log-likelihood."""
    if table.regression or scores.ndim == 1:
        return quality(table, held, scores)
    scores = np.clip(scores, 1e-12, None)
    shares = scores / scores.sum(axis=1, keepdims=True)
    return -float(log_loss(table.y[held], shares, labels=np.arange(scores.shape[1])))
