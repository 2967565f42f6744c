"""From scores to probabilities and to a threshold.

A pairwise loss only ranks: adding a constant to f, or stretching it, changes no pair. A logistic
curve with two parameters, fitted to rows whose labels are known, turns f into log-odds (Platt's
method, with his smoothed targets, so that perfectly separated scores stay finite).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

Array = npt.NDArray[Any]

_ROUNDS = 100
_FLAT = 1e-6
"""The least slope: a curve that falls would turn the ranking around."""


def fit_log_odds(f: Array, positive: Array, weights: Array) -> tuple[float, float]:
    """Slope a > 0 and intercept b: the log-odds of a positive label at score f are a·f + b."""
    ups, downs = float(weights[positive].sum()), float(weights[~positive].sum())
    target = np.where(positive, (ups + 1) / (ups + 2), 1 / (downs + 2))
    middle = float(weights @ f / weights.sum())
    width = float(np.sqrt(weights @ np.square(f - middle) / weights.sum())) or 1.0
    x = np.stack(((f - middle) / width, np.ones_like(f)), axis=1)  # (rows, 2)
    parameters = np.array([0.0, np.log((ups + 1) / (downs + 1))])
    loss = _cross_entropy(x @ parameters, target, weights)
    for _ in range(_ROUNDS):
        p = expit(x @ parameters)
        gradient = x.T @ (weights * (p - target))
        hessian = (x.T * (weights * p * (1 - p))) @ x
        step = np.linalg.solve(hessian + 1e-12 * np.trace(hessian) * np.eye(2), gradient)
        size = 1.0
        # A convex function: halving the step must at last lower it.
        while True:
            trial = parameters - size * step
            after = _cross_entropy(x @ trial, target, weights)
            if after <= loss or size < 1e-8:
                break
            size /= 2
        parameters, gain, loss = trial, loss - after, after
        if gain <= 1e-12 * abs(loss):
            break
    slope = max(float(parameters[0]), _FLAT)
    return slope / width, float(parameters[1]) - slope * middle / width


def _cross_entropy(log_odds: Array, target: Array, weights: Array) -> float:
    return float(weights @ (np.logaddexp(0, log_odds) - target * log_odds))


def threshold_of(rule: float | str, log_odds: Array, positive: Array, weights: Array) -> float:
    """The log-odds above which a row is called positive, by a probability or by a rule."""
    if not isinstance(rule, str):
        return float(logit(rule))
    return _best_cut(SCORES[rule], log_odds, positive, weights)


def _best_cut(
    score: Callable[[Array, Array, float, float], Array],
    log_odds: Array,
    positive: Array,
    weights: Array,
) -> float:
    """Half-way between two neighbouring values, where the score is highest."""
    order = np.argsort(-log_odds)
    values = log_odds[order]
    hits = np.cumsum(np.where(positive, weights, 0.0)[order])
    false = np.cumsum(np.where(positive, 0.0, weights)[order])
    # A cut can only lie between different values; the last one calls every row positive.
    last = np.append(values[:-1] > values[1:], True)
    scores = np.where(last, score(hits, false, hits[-1], false[-1]), -np.inf)
    best = int(scores.argmax())
    if best + 1 == len(values):
        return float(values[-1]) - 1.0
    return float(values[best] + values[best + 1]) / 2


def _balanced(hits: Array, false: Array, ups: float, downs: float) -> Array:
    """Mean of the shares of positives and of negatives that are called right."""
    return hits / ups + 1 - false / downs


def _f1(hits: Array, false: Array, ups: float, downs: float) -> Array:
    return 2 * hits / (hits + false + ups)


SCORES: Mapping[str, Callable[[Array, Array, float, float], Array]] = {
    "balanced": _balanced,
    "f1": _f1,
}
"""The scores that a threshold can be chosen to maximise."""
