"""AVFKAMClassifier: the pooled solution, probabilities, thresholds, labels that cannot be used."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from tests.naive.pairwise import over_pairs
from tests.naive.pooled import pooled_coefficients, pooled_features, pooled_prediction
from tests.options import grouped
from vertikal import AVFKAMClassifier, FDSKLClassifier, Stochastic, Values
from vertikal.algorithms.kernel_machine.avfkam import check_classes, held_out
from vertikal.algorithms.kernel_machine.settings import AvfkamSettings
from vertikal.errors import InputError
from vertikal.party.party import Labels

GENERATOR = np.random.default_rng(0)
ROWS = 120
X = GENERATOR.normal(size=(ROWS, 6))
Y = (X[:, 0] * X[:, 3] + 0.5 * GENERATOR.normal(size=ROWS) > 0.8).astype(int)
PARTIES = {"bank": [0, 5], "shop": [1, 2], "phone": [3, 4]}


def rings(rows, seed=0):
    """Rare positives in a ring: no linear model finds them."""
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(rows, 4))
    radius = np.hypot(points[:, 0], points[:, 2])
    chance = expit(12 * (np.abs(radius - 2.2) < 0.35) - 7)
    return points, np.where(generator.random(rows) < chance, "fraud", "fair")


def make(**settings):
    given = {
        "parties": PARTIES,
        "n_components": 30,
        "bandwidth": 2.0,
        "alpha": 0.01,
        "validation": 0.0,
        "random_state": 1,
        "timeout": 60,
    }
    return AVFKAMClassifier(**grouped(**(given | settings)))


@pytest.mark.parametrize("loss", ["squared_hinge", "square", "logistic"])
@pytest.mark.parametrize("label_parties", [1, 2, 3])
@pytest.mark.parametrize("functions", ["cosine", "pair"])
def test_exact_is_the_pooled_solution_over_all_pairs(loss, label_parties, functions):
    settings = {"label_parties": label_parties, "feature_map__functions": functions}
    model = make(loss=loss, tol=1e-8, **settings).fit(X, Y)
    features = pooled_features(model, X)

    def objective(a):
        value, gradient = over_pairs(loss, features @ a, Y == 1, np.ones(ROWS))
        return value + 0.005 * a @ a, features.T @ gradient + 0.01 * a

    found = pooled_coefficients(model)[:, 0]
    best = minimize(objective, found, jac=True, method="L-BFGS-B", options={"maxiter": 30})
    assert objective(found)[0] == pytest.approx(best.fun, rel=1e-6)
    assert model.objective_[-1] == pytest.approx(best.fun, rel=1e-6)
    log_odds = logit(model.predict_proba(X)[:, 1])
    np.testing.assert_allclose(log_odds, pooled_prediction(model, X)[:, 0], atol=1e-6)


def test_rare_classes_are_ranked_about_as_well_as_by_a_pointwise_loss():
    points, y = rings(3000)
    new, truth = rings(3000, seed=1)
    given = {"parties": 2, "n_components": 400, "scale": "standard", "random_state": 0}
    scores = {
        model: roc_auc_score(truth == "fraud", model(**given).fit(points, y).decision_function(new))
        for model in (AVFKAMClassifier, FDSKLClassifier)
    }
    # "fraud" is the second of the classes in sorted order, hence the positive one.
    assert scores[AVFKAMClassifier] > 0.9
    assert scores[AVFKAMClassifier] > scores[FDSKLClassifier] - 0.03


def test_probabilities_are_calibrated_on_held_out_rows():
    points, y = rings(4000)
    new, truth = rings(4000, seed=1)
    model = AVFKAMClassifier(
        parties=2, n_components=300, scale="standard", validation=0.25, random_state=0
    ).fit(points, y)
    chances = model.predict_proba(new)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    positive = truth == "fraud"
    assert chances[:, 1].mean() == pytest.approx(positive.mean(), rel=0.25)
    order = np.argsort(chances[:, 1])
    for part in np.array_split(order, 4)[2:]:  # the upper half, where the positives are
        assert chances[part, 1].mean() == pytest.approx(positive[part].mean(), abs=0.12)
    slope, intercept = model.calibration_
    assert slope > 0
    np.testing.assert_allclose(expit(model.decision_function(new)), chances[:, 1])
    assert np.isfinite(intercept)
    assert model.threshold_ == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("rule", "score"), [("balanced", balanced_accuracy_score), ("f1", f1_score)]
)
def test_a_threshold_is_chosen_on_request(rule, score):
    points, y = rings(4000)
    new, truth = rings(4000, seed=1)
    given = {"parties": 2, "n_components": 300, "scale": "standard", "random_state": 0}
    given["validation"] = 0.25
    plain, chosen = (
        AVFKAMClassifier(**given, threshold=threshold).fit(points, y) for threshold in (0.5, rule)
    )
    truth = truth == "fraud"
    found = [score(truth, model.predict(new) == "fraud") for model in (plain, chosen)]
    assert found[1] >= found[0] - 0.01
    assert chosen.threshold_ < 0.5
    # Only the threshold moves: probabilities and ranks stay.
    np.testing.assert_allclose(chosen.predict_proba(new), plain.predict_proba(new))
    above = chosen.decision_function(new) > 0
    np.testing.assert_array_equal(above, chosen.predict_proba(new)[:, 1] > chosen.threshold_)


def test_a_given_probability_is_the_threshold():
    model = make(threshold=0.2).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X) == 1, model.predict_proba(X)[:, 1] > 0.2)


def test_held_out_rows_do_not_train():
    y = np.where(GENERATOR.random(400) < 0.3, 1, 0)
    points = GENERATOR.normal(size=(400, 4))
    one = AVFKAMClassifier(n_components=16, validation=0.25, bandwidth=1.0, random_state=0)
    model = one.fit(points, y)
    held = held_out(Labels(np.where(y[:, None] == 1, 1.0, -1.0), np.ones(400)), model.settings_)
    assert held.sum() == int(0.25 * (y == 1).sum()) + int(0.25 * (y == 0).sum())
    before = {name: shard.coefficients for name, shard in model.shards_.items()}
    moved = points.copy()
    moved[held] = GENERATOR.normal(size=(held.sum(), 4))
    again = one.fit(moved, y)
    for name, coefficients in before.items():
        if coefficients is not None:
            np.testing.assert_allclose(again.shards_[name].coefficients, coefficients, atol=1e-9)


def test_few_rows_are_not_held_out():
    labels = Labels(np.where(np.arange(100) < 99, -1.0, 1.0)[:, None], np.ones(100))
    settings = AvfkamSettings(parties=("a", "b"), label_parties=("a",), validation=0.5)
    assert not held_out(labels, settings).any()


def test_rows_of_weight_zero_are_as_if_they_were_not_there():
    weights = np.where(np.arange(ROWS) % 4 == 0, 0.0, 1.0)
    kept = weights > 0
    weighted = make().fit(X, Y, weights)
    without = make().fit(X[kept], Y[kept])
    np.testing.assert_allclose(
        weighted.decision_function(X), without.decision_function(X), atol=1e-4
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"cache_size": 1500},
        {"feature_map": "landmarks", "n_components": 20},
        {"masking": "trees"},
        {"kernel": "laplace"},
        {"label_parties": 2, "solver": Stochastic(schedule="turns", n_steps=40)},
    ],
)
def test_other_settings_of_the_federation_work_too(settings):
    model = make(**settings).fit(X, Y)
    assert roc_auc_score(Y, model.decision_function(X)) > 0.7
    assert model.ledger_.bytes > 0
    assert {"phases", "solve"} <= set(model.report_.stages)


def test_hidden_phases_give_the_solution_of_open_ones():
    given = {"alpha": 0.1, "tol": 1e-2}
    shown = make(**given).fit(X, Y)
    hidden = make(disclosure=Values(max_passes=100), **given).fit(X, Y)
    gap = np.abs(shown.decision_function(X) - hidden.decision_function(X)).max()
    assert gap < 0.05 * np.ptp(shown.decision_function(X))


def test_the_logistic_loss_says_which_pairs_it_was_summed_over():
    assert make(loss="logistic").fit(X, Y).pairs_ == f"all {Y.sum() * (1 - Y).sum():,} pairs"


def test_three_classes_are_refused_with_a_remedy():
    with pytest.raises(InputError, match="two classes, got 3; use FDSKLClassifier") as caught:
        make().fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("y", "weights"),
    [
        (np.zeros(ROWS, int), None),
        (np.arange(ROWS) % 2, np.where(np.arange(ROWS) % 2 == 1, 0.0, 1.0)),
    ],
)
def test_a_class_without_rows_is_refused(y, weights):
    with pytest.raises(InputError, match=r"^y must hold rows .* of two classes, got rows by class"):
        make().fit(X, y, weights)


def test_a_class_of_few_rows_is_warned_of():
    y = np.where(np.arange(ROWS) < 4, 1, 0)
    with pytest.warns(UserWarning, match=r"fewer than 10 rows.*\{0: 116, 1: 4\}"):
        make().fit(X, y)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (np.ones((4, 1)), "bank: labels must hold rows of both classes, got no negative ones"),
        (np.array([[1.0], [-1.0], [0.5]]), "bank: labels must be binary"),
        (np.ones((4, 2)), "bank: labels must be binary"),
    ],
)
def test_a_label_party_refuses_labels_without_pairs(targets, message):
    with pytest.raises(InputError, match=f"^{message}"):
        check_classes("bank", Labels(targets, np.ones(len(targets))))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"loss": "hinge"}, r"^loss must be one of \['squared_hinge', "),
        ({"validation": 0.9}, "^validation must be a number from 0 to 0.5, got 0.9"),
        (
            {"threshold": 2},
            "^threshold must be a number above 0 and below 1, 'balanced' or 'f1'",
        ),
        (
            {"solver": Stochastic(max_staleness=1), "label_parties": 3},
            "^max_staleness must be at least 2, one update of each other label party, got 1",
        ),
        (
            {
                "solver": "dsg",
                "parties": 4,
                "label_parties": 2,
                "disclosure": "values",
            },
            "^schedule must be 'turns' or 'barrier' with disclosure='values'",
        ),
        (
            {"masking": "trees", "label_parties": 3, "solver": Stochastic(allow_missing=True)},
            "^masking must be 'pads' with allow_missing=True, got 'trees'",
        ),
        (
            {"solver": "dsg", "label_parties": 2, "cache_size": 100},
            "^cache_size must be enough for all 120 rows with solver='dsg': batches of pairs",
        ),
        (
            {"solver": Stochastic(schedule="turns"), "disclosure": "values"},
            "^solver must be 'exact' with disclosure='values': batches of pairs",
        ),
    ],
)
def test_wrong_settings_are_named(setting, message):
    with pytest.raises(InputError, match=message) as caught:
        make(**setting).fit(X, Y)
    assert "\n" not in str(caught.value)


def test_sealed_ranks_as_the_same_loss_in_the_open():
    """Pairwise square on shares; nobody opened a prediction, so there is none to calibrate on."""
    common = {"loss": "square", "alpha": 0.01, "max_iter": 300}
    sealed = make(**common, disclosure="sealed").fit(X, Y)
    opened = make(**common, tol=1e-8).fit(X, Y)
    ours, theirs = (model.decision_function(X) for model in (sealed, opened))
    # Same seeds, same features; the open model is only scaled and shifted to log-odds.
    assert np.corrcoef(ours, theirs)[0, 1] > 0.999
    assert roc_auc_score(Y, ours) == pytest.approx(roc_auc_score(Y, theirs), abs=0.005)
    for asked in (sealed.predict, sealed.predict_proba):
        with pytest.raises(InputError, match=r"^with disclosure='sealed' no prediction is opened"):
            asked(X)
    with pytest.raises(InputError, match=r"^sample_weight must be the same for all rows with"):
        make(**common, disclosure="sealed").fit(X, Y, sample_weight=np.arange(ROWS) + 1.0)
