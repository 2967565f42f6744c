"""Probabilities from scores, and thresholds, against plain searches."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.metrics import balanced_accuracy_score, f1_score

from vertikal.solvers.calibration import fit_log_odds, threshold_of

GENERATOR = np.random.default_rng(0)


def draw(rows=400, slope=2.0, intercept=-1.0, seed=0):
    generator = np.random.default_rng(seed)
    f = generator.normal(5, 3, rows)
    positive = generator.random(rows) < expit(slope * (f - 5) + intercept)
    return f, positive, np.ones(rows)


def by_scipy(f, positive, weights):
    ups, downs = weights[positive].sum(), weights[~positive].sum()
    target = np.where(positive, (ups + 1) / (ups + 2), 1 / (downs + 2))

    def loss(ab):
        z = ab[0] * f + ab[1]
        return weights @ (np.logaddexp(0, z) - target * z)

    return minimize(loss, [0.1, 0.0], method="Nelder-Mead", options={"maxiter": 4000}).x


@pytest.mark.parametrize("seed", range(4))
def test_the_curve_is_the_one_of_least_cross_entropy(seed):
    f, positive, _ = draw(seed=seed)
    weights = np.random.default_rng(seed).integers(0, 3, len(f)).astype(float)
    np.testing.assert_allclose(
        fit_log_odds(f, positive, weights), by_scipy(f, positive, weights), rtol=1e-2, atol=1e-2
    )


def test_a_known_curve_is_found_again_and_stretching_the_scores_changes_nothing():
    f, positive, weights = draw(20_000)
    slope, intercept = fit_log_odds(f, positive, weights)
    assert slope == pytest.approx(2, rel=0.1)
    assert intercept == pytest.approx(-11, rel=0.1)
    other = fit_log_odds(1e4 * f - 7e5, positive, weights)
    np.testing.assert_allclose(
        other[0] * (1e4 * f - 7e5) + other[1], slope * f + intercept, rtol=1e-5
    )


def test_a_weight_of_two_is_the_row_twice():
    f, positive, weights = draw(60)
    weights[::2] = 2.0
    twice = np.repeat(np.arange(60), weights.astype(int))
    np.testing.assert_allclose(
        fit_log_odds(f, positive, weights),
        fit_log_odds(f[twice], positive[twice], np.ones(len(twice))),
        rtol=1e-6,
    )


def test_perfectly_separated_scores_stay_finite():
    f = np.linspace(-1, 1, 40)
    slope, intercept = fit_log_odds(f, f > 0, np.ones(40))
    assert 0 < slope < 1e3
    assert np.isfinite(intercept)


@pytest.mark.parametrize("f", [np.zeros(40), -np.linspace(-1, 1, 40)])
def test_scores_that_tell_nothing_or_lie_keep_their_order(f):
    positive = np.linspace(-1, 1, 40) > 0.2
    slope, _ = fit_log_odds(f, positive, np.ones(40))
    assert slope > 0


@pytest.mark.parametrize(
    ("rule", "score"), [("balanced", balanced_accuracy_score), ("f1", f1_score)]
)
@pytest.mark.parametrize("seed", range(5))
def test_a_threshold_is_the_best_of_all(rule, score, seed):
    generator = np.random.default_rng(seed)
    log_odds = np.round(generator.normal(size=60), 1)  # with ties
    positive = generator.random(60) < expit(2 * log_odds - 1.5)
    cut = threshold_of(rule, log_odds, positive, np.ones(60))
    best = max(score(positive, log_odds > c) for c in np.append(np.unique(log_odds) - 1e-9, np.inf))
    assert score(positive, log_odds > cut) == pytest.approx(best)


def test_a_weight_moves_the_threshold():
    log_odds = np.array([-2.0, -1.0, 0.0, 1.0])
    positive = np.array([False, True, False, True])
    assert threshold_of("balanced", log_odds, positive, np.array([1, 9.0, 1, 1])) == -1.5
    assert threshold_of("balanced", log_odds, positive, np.array([1, 0.1, 9.0, 1])) == 0.5


def test_where_all_rows_should_be_positive_the_threshold_lies_below_them():
    log_odds = np.array([3.0, 1.0, 2.0])
    assert threshold_of("f1", log_odds, np.array([False, True, True]), np.ones(3)) < 1


def test_a_probability_is_its_log_odds():
    nothing = np.zeros(0)
    assert threshold_of(0.2, nothing, nothing, nothing) == pytest.approx(logit(0.2))
