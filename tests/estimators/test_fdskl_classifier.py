"""FDSKLClassifier: classes, probabilities, weights, several label parties."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from tests.options import grouped
from vertikal import FDSKLClassifier

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(120, 6))
NEW = GENERATOR.normal(size=(30, 6))
Y = (X[:, 0] * X[:, 3] > 0).astype(int)
THREE = np.digitize(X[:, 0] + X[:, 3], [-0.7, 0.7])


def make(**settings):
    given = {
        "parties": 3,
        "n_components": 64,
        "random_state": 0,
        "bandwidth": 2.0,
        "tol": 1e-8,
        "timeout": 20,
    }
    return FDSKLClassifier(**grouped(**(given | settings)))


def test_it_is_as_good_as_a_support_vector_machine():
    points, labels = make_moons(400, noise=0.2, random_state=0)
    ours = FDSKLClassifier(parties=2, n_components=256, random_state=0)
    ours.fit(points[:300], labels[:300])
    gamma = 1 / (2 * ours.bandwidth_**2)
    theirs = SVC(gamma=gamma).fit(points[:300], labels[:300])
    assert ours.score(points[300:], labels[300:]) >= theirs.score(points[300:], labels[300:]) - 0.03
    assert ours.score(points[300:], labels[300:]) > 0.9


@pytest.mark.parametrize("names", [["no", "yes"], [-1, 1], [False, True], [2.0, 7.0]])
def test_classes_may_have_any_name(names):
    model = make().fit(X, np.array(names)[Y])
    assert model.classes_.tolist() == names
    assert set(model.predict(X)) == set(names)
    plain = make().fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(NEW), plain.decision_function(NEW))
    np.testing.assert_array_equal(model.predict(NEW) == names[1], model.decision_function(NEW) > 0)


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
def test_probabilities(loss, labels):
    model = make(loss=loss).fit(X, labels)
    chances = model.predict_proba(NEW)
    assert chances.shape == (30, len(set(labels.tolist())))
    assert (chances >= 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], model.predict(NEW))


def test_probabilities_of_one_against_the_rest_that_all_say_no():
    """With the square loss all clipped probabilities may be 0; then nothing is known."""
    model = make(loss="square").fit(X, THREE)
    model.shards_["party1"].constant[:] = -50.0
    np.testing.assert_allclose(model.predict_proba(NEW), 1 / 3)


def test_logistic_probabilities_are_the_sigmoid_of_f():
    model = make().fit(X, Y)
    expected = 1 / (1 + np.exp(-model.decision_function(NEW)))
    np.testing.assert_allclose(model.predict_proba(NEW)[:, 1], expected)


def test_the_smooth_hinge_has_no_probabilities():
    model = make(loss="smooth_hinge").fit(X, Y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(NEW)
    assert hasattr(make(loss="logistic"), "predict_proba")
    assert model.score(X, Y) > 0.8


def test_several_classes_are_learned_one_against_the_rest():
    model = make().fit(X, THREE)
    values = model.decision_function(NEW)
    assert values.shape == (30, 3)
    assert model.score(X, THREE) > 0.8
    for number in range(3):
        alone = make().fit(X, (number == THREE).astype(int))
        np.testing.assert_allclose(values[:, number], alone.decision_function(NEW), atol=1e-6)


@pytest.mark.parametrize("label_parties", [2, 3, ["party3", "party1"]])
def test_several_label_parties_are_as_good_as_one(label_parties):
    one = make(n_components=256).fit(X, Y)
    several = make(n_components=256, label_parties=label_parties).fit(X, Y)
    assert several.score(X, Y) == pytest.approx(one.score(X, Y), abs=0.06)
    assert several.score(X, Y) > 0.85
    names = several.settings_.label_parties
    held = {n: s.coefficients for n, s in several.shards_.items() if s.coefficients is not None}
    assert set(held) == set(names)
    assert sum(len(c) for c in held.values()) == 256
    # Nobody's coefficients are a copy of another's.
    first, second = (held[name].ravel()[:50] for name in names[:2])
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.5


def test_rows_of_weight_two_are_rows_that_occur_twice():
    weights = np.ones(120)
    weights[:40] = 2
    weighted = make().fit(X, Y, weights)
    copied = make().fit(np.vstack([X, X[:40]]), np.concatenate([Y, Y[:40]]))
    np.testing.assert_allclose(
        weighted.decision_function(NEW), copied.decision_function(NEW), atol=1e-6
    )
    assert weighted.alpha_ == copied.alpha_ == pytest.approx(0.1 / 160)
    plain = make().fit(X, Y).decision_function(NEW)
    assert np.abs(weighted.decision_function(NEW) - plain).max() > 0.01


def test_rows_without_weight_do_not_count():
    weights = np.ones(120)
    weights[100:] = 0
    y = Y.copy()
    y[100:] = 1 - y[100:]
    weighted = make().fit(X, y, weights)
    fewer = make().fit(X[:100], Y[:100])
    np.testing.assert_allclose(
        weighted.decision_function(NEW), fewer.decision_function(NEW), atol=1e-6
    )


def test_few_rows_with_weight_among_many_without():
    rows = GENERATOR.normal(size=(900, 4))
    labels = (rows[:, 0] > 0).astype(int)
    weights = np.zeros(900)
    weights[np.flatnonzero(labels)[:3]] = 1
    weights[np.flatnonzero(labels == 0)[:3]] = 1
    model = make(parties=2, n_components=16).fit(rows, labels, weights)
    used = weights > 0
    few = make(parties=2, n_components=16).fit(rows[used], labels[used])
    np.testing.assert_allclose(
        model.decision_function(rows), few.decision_function(rows), atol=1e-5
    )


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 3.0}])
def test_class_weights_are_sample_weights(class_weight):
    counts = np.bincount(Y)
    factors = len(Y) / (2 * counts) if class_weight == "balanced" else np.array([1.0, 3.0])
    by_class = make(class_weight=class_weight).fit(X, Y)
    by_row = make().fit(X, Y, factors[Y])
    np.testing.assert_allclose(
        by_class.decision_function(NEW), by_row.decision_function(NEW), atol=1e-7
    )


def test_class_and_sample_weights_multiply():
    weights = np.linspace(0.5, 2, 120)
    both = make(class_weight={0: 1.0, 1: 3.0}).fit(X, Y, weights)
    one = make().fit(X, Y, weights * np.array([1.0, 3.0])[Y])
    np.testing.assert_allclose(both.decision_function(NEW), one.decision_function(NEW), atol=1e-7)


def test_attributes_after_fitting():
    model = make(parties={"bank": [0, 2], "shop": slice(3, 5)}, label_parties="shop").fit(X, Y)
    assert model.n_features_in_ == 6
    assert model.columns_ == {"bank": [0, 2], "shop": [3, 4]}
    assert model.settings_.label_parties == ("shop",)
    assert model.bandwidth_ == 2.0
    assert model.alpha_ == pytest.approx(0.1 / 120)
    assert model.n_iter_ >= 1
    assert len(model.objective_) == model.n_iter_ + 1
    assert model.objective_[-1] < model.objective_[0]


def test_columns_that_no_party_lists_are_not_used():
    model = make(parties={"bank": [0], "shop": [3]}).fit(X, Y)
    changed = NEW.copy()
    changed[:, [1, 2, 4, 5]] = 99.0
    np.testing.assert_array_equal(model.decision_function(NEW), model.decision_function(changed))


def test_stopping_early_warns():
    with pytest.warns(ConvergenceWarning, match="not converged to tolerance 1e-08 in 1 iterations"):
        make(max_iter=1).fit(X, Y)


@pytest.mark.filterwarnings("default")
def test_shared_directions_warn():
    with pytest.warns(UserWarning, match="recover the differences between any two rows"):
        make(feature_map__directions="shared").fit(X, Y)


@pytest.mark.parametrize("number", [np.int64(64), np.int32(64)])
def test_numbers_of_numpy_are_numbers(number):
    model = make(n_components=number, bandwidth=np.float32(2.0), parties=np.int64(3)).fit(X, Y)
    np.testing.assert_array_equal(
        model.decision_function(NEW), make().fit(X, Y).decision_function(NEW)
    )
