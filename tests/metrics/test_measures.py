"""Measures against scikit-learn's, with weights and ties, and the intervals around them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from sklearn import metrics as reference

from vertikal.metrics import decisions, deviations
from vertikal.metrics.intervals import bootstrap
from vertikal.metrics.measures import Measures, measure_classes, measure_numbers
from vertikal.metrics.ranking import Curve, Ranking


def sample(rows=300, seed=0, *, ties=True):
    """Scores that know something, their outcomes, and weights."""
    generator = np.random.default_rng(seed)
    positive = generator.random(rows) < 0.3
    scores = generator.normal(size=rows) + positive
    if ties:
        scores = scores.round(1)
    return scores, positive, generator.integers(0, 4, rows).astype(float)


@pytest.mark.parametrize("ties", [True, False])
def test_ranking_measures_are_those_of_scikit_learn(ties):
    scores, positive, weights = sample(ties=ties)
    ranking = Ranking.of(scores, positive)
    for given in (np.ones(len(scores)), weights):
        assert ranking.auc(given) == pytest.approx(
            reference.roc_auc_score(positive, scores, sample_weight=given), abs=1e-12
        )
        assert ranking.average_precision(given) == pytest.approx(
            reference.average_precision_score(positive, scores, sample_weight=given), abs=1e-12
        )


def test_the_auc_counts_pairs():
    scores, positive, _ = sample(60)
    pairs = [
        (above > below) + (above == below) / 2
        for above in scores[positive]
        for below in scores[~positive]
    ]
    assert Ranking.of(scores, positive).auc() == pytest.approx(np.mean(pairs), abs=1e-12)


def test_curves_are_those_of_scikit_learn():
    scores, positive, _ = sample(80)
    ranking = Ranking.of(scores, positive)
    x, y, _ = reference.roc_curve(positive, scores, drop_intermediate=False)
    assert np.allclose(ranking.roc(), (x, y))
    precision, recall, _ = reference.precision_recall_curve(positive, scores)
    assert np.allclose(ranking.precision_recall(), (recall[:-1][::-1], precision[:-1][::-1]))
    asked, found = ranking.gain()
    order = np.argsort(-scores, kind="stable")
    threshold = scores[order][19]
    share = (scores >= threshold).mean()
    place = int(np.argmin(np.abs(np.array(asked) - share)))
    assert asked[place] == pytest.approx(share)
    assert found[place] == pytest.approx(positive[scores >= threshold].sum() / positive.sum())


def test_a_long_curve_is_thinned_between_its_ends():
    scores, positive, _ = sample(5000, ties=False)
    x, y = Ranking.of(scores, positive).roc()
    assert len(x) <= 200
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(y, x) == pytest.approx(reference.roc_auc_score(positive, scores), abs=0.003)


def test_measures_of_decisions_are_those_of_scikit_learn():
    scores, positive, weights = sample()
    chance = 1 / (1 + np.exp(-scores))
    both = np.stack([1 - chance, chance], axis=1)
    places, called = positive.astype(int), chance > 0.5
    for ours, theirs in (
        (
            decisions.log_loss(both, places, weights),
            reference.log_loss(places, both, sample_weight=weights),
        ),
        (
            decisions.brier(chance, positive, weights),
            reference.brier_score_loss(positive, chance, sample_weight=weights),
        ),
        (
            decisions.accuracy(called.astype(int), places, weights),
            reference.accuracy_score(positive, called, sample_weight=weights),
        ),
        (
            decisions.f1(called, positive, weights),
            reference.f1_score(positive, called, sample_weight=weights),
        ),
    ):
        assert ours == pytest.approx(theirs, abs=1e-12)
    never = np.zeros(len(positive), bool)
    assert decisions.f1(never, never, weights) == 0


def test_measures_of_numbers_are_those_of_scikit_learn():
    generator = np.random.default_rng(1)
    targets = generator.normal(size=100)
    predicted = targets + 0.3 * generator.normal(size=100)
    weights = generator.integers(0, 3, 100).astype(float)
    for ours, theirs in (
        (deviations.rmse, reference.root_mean_squared_error),
        (deviations.mae, reference.mean_absolute_error),
        (deviations.r2, reference.r2_score),
    ):
        expected = theirs(targets, predicted, sample_weight=weights)
        assert ours(predicted, targets, weights) == pytest.approx(expected, abs=1e-12)
    assert np.isnan(deviations.r2(predicted, np.ones(100), weights))


def test_calibration_and_histogram_by_hand():
    chance = np.array([0.1, 0.1, 0.2, 0.8, 0.9, 1.0])
    positive = np.array([False, False, True, True, True, True])
    assert np.allclose(decisions.calibration(chance, positive, 2), [[0.4 / 3, 0.9], [1 / 3, 1.0]])
    assert np.allclose(decisions.histogram(chance, 0.0, 1.0, 2), [[0.25, 0.75], [0.5, 0.5]])


def test_an_interval_covers_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(3)
    covered = 0
    for number in range(60):
        drawn = generator.normal(size=80)
        found = bootstrap(
            {"mean": lambda w, x=drawn: float(w @ x / w.sum())}, 80, draws=200, seed=number
        )["mean"]
        assert found.value == pytest.approx(drawn.mean())
        covered += found.low <= 0 <= found.high
    assert 50 <= covered <= 60


def test_intervals_are_the_same_for_the_same_seed_alone():
    scores, positive, _ = sample(100)
    ranking = Ranking.of(scores, positive)
    one, again, other = (
        bootstrap({"auc": ranking.auc}, 100, draws=50, seed=seed)["auc"] for seed in (1, 1, 2)
    )
    assert one == again
    assert one != other


def test_two_classes_are_measured_by_the_positive_one():
    scores, positive, _ = sample()
    chance = 1 / (1 + np.exp(-scores))
    found = measure_classes(
        scores[:, None],
        positive.astype(int),
        ("no", "yes"),
        (chance > 0.5).astype(int),
        np.stack([1 - chance, chance], axis=1),
    )
    assert found.main == "auc"
    assert set(found.numbers) == {
        *("auc", "average_precision", "log_loss", "accuracy", "brier", "f1")
    }
    for low, value, high in ((one.low, one.value, one.high) for one in found.numbers.values()):
        assert low < value < high
    (yes,) = found.classes.values()
    assert list(found.classes) == ["yes"]
    assert yes.rows == positive.sum()
    assert yes.numbers["auc"] == found.numbers["auc"]
    assert {"roc", "precision_recall", "gain", "calibration"} <= set(yes.curves)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Measures) == found


def test_several_classes_are_measured_one_by_one():
    generator = np.random.default_rng(2)
    places = generator.integers(0, 3, 200)
    scores = generator.normal(size=(200, 3)) + 2 * np.eye(3)[places]
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    predicted = scores.argmax(axis=1)
    found = measure_classes(scores, places, ("a", "b", "c"), predicted, chances)
    for name, value in (
        ("auc", reference.roc_auc_score(places, chances, multi_class="ovr")),
        ("log_loss", reference.log_loss(places, chances)),
        ("accuracy", reference.accuracy_score(places, predicted)),
    ):
        assert found.numbers[name].value == pytest.approx(value, abs=1e-12)
    expected = reference.f1_score(places, predicted, average=None)
    for one, value in zip(found.classes.values(), expected, strict=True):
        assert one.numbers["f1"].value == pytest.approx(value)


def test_a_class_without_held_out_rows_has_no_numbers():
    scores = np.array([[0.1], [0.7], [0.3]])
    found = measure_classes(scores, np.zeros(3, int), ("no", "yes"), np.zeros(3, int), None)
    assert found.numbers["auc"].value is None
    assert found.numbers["accuracy"].value == 1
    assert "log_loss" not in found.numbers


def test_numbers_are_measured_by_r2_first():
    targets = np.linspace(0, 1, 50)
    found = measure_numbers(targets + 0.1, targets)
    assert found.main == "r2"
    assert found.numbers["mae"].value == pytest.approx(0.1)
    assert found.classes == {}


def test_a_short_curve_is_kept_whole():
    assert Curve.through(np.arange(3.0), np.arange(3.0)) == ((0, 1, 2), (0, 1, 2))
