"""ADMM sharing's estimators: classes, additive kernels, privacy, budgets and bad input."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from vertikal import ADMMClassifier, ADMMRegressor, Gaussian
from vertikal.errors import BudgetSpent, InputError
from vertikal.privacy.budget import BudgetFile
from vertikal.secure import lattice_gaussian

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(300, 6))
Y = (X[:, 0] - X[:, 4] + 0.3 * GENERATOR.normal(size=300) > 0).astype(int)
PRIVATE = {"epsilon": 30.0, "delta": 1e-4, "bound": 3.0}


def test_several_classes():
    y = np.argmax(X[:, [0, 2, 4]], axis=1)
    model = ADMMClassifier(3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.predict_proba(X).shape == (300, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_party_names_columns_and_the_central_node():
    model = ADMMClassifier({"bank": [0, 1], "shop": [4, 5]}, label_parties="shop").fit(X, Y)
    assert model.settings_.label_parties == ("shop",)
    assert {
        e.receiver for e in model.ledger_.entries() if e.disclosure.name == "contributions"
    } == {"shop"}
    assert model.shards_["bank"].coefficients.shape == (2, 1)
    assert model.shards_["shop"].coefficients.shape == (3, 1)  # and the intercept


def test_an_additive_kernel_model_learns_what_a_linear_one_cannot():
    y = (np.abs(X[:, 0]) + np.abs(X[:, 4]) > 1.5).astype(int)
    linear = ADMMClassifier(2).fit(X, y).score(X, y)
    additive = ADMMClassifier(2, kernel=Gaussian(n_components=64), random_state=0).fit(X, y)
    assert linear < 0.75
    assert additive.score(X, y) > 0.93
    again = ADMMClassifier(2, kernel=Gaussian(n_components=64), random_state=0)
    again.fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(again.decision_function(X), additive.decision_function(X), atol=1e-6)


def test_an_additive_model_knows_no_interaction_of_parties():
    y = (X[:, 0] * X[:, 4] > 0).astype(int)
    model = ADMMClassifier(2, kernel=Gaussian(n_components=32), alpha=0.01, random_state=0)
    half = model.fit(X[:150], y[:150])
    assert half.score(X[150:], y[150:]) < 0.62


def test_private_training_learns_and_reports_what_it_spent():
    model = ADMMClassifier(2, privacy=PRIVATE, max_iter=10, alpha=1e-2, random_state=0).fit(X, Y)
    assert model.n_iter_ == 10  # it stops when the budget is spent, not before
    for spent in model.privacy_spent_.values():
        assert [entry.round for entry in spent] == list(range(1, 11))
        assert spent[-1].epsilon == pytest.approx(30.0, rel=1e-2)
        assert spent[0].epsilon < 0.5 * spent[-1].epsilon
        assert spent[-1].delta == 1e-4
    assert all(math.isnan(entry.objective) for entry in model.rounds_)
    assert model.report_.releases()[0][:2] == (1, "party1")
    assert re.search(r"^10 +party2 +30(\.\d+)? +0\.0001$", str(model.report_), re.MULTILINE)
    assert "<tr><td>10</td><td>party2</td><td>30</td>" in model.report_._repr_html_()
    assert "progress" not in {d.name for d in model.ledger_.disclosures()}
    for shard in model.shards_.values():
        assert np.linalg.norm(shard.coefficients) <= 3.0 * (1 + 1e-9)
    assert model.score(X, Y) > 0.75


def test_with_privacy_one_release_is_automatic():
    model = ADMMClassifier(2, privacy=PRIVATE).fit(X, Y)
    assert [entry.round for entry in model.privacy_spent_["party2"]] == [1]
    assert model.settings_.most_rounds == 1
    assert ADMMClassifier(2, tol=0.1).fit(X, Y).settings_.most_rounds == 200


def test_progress_says_what_is_spent():
    seen = []

    class Notes:
        def begin(self, party, stage, total): ...

        def advance(self, party, stage, amount, note):
            seen.append((party, note))

        def end(self, party, stage, seconds): ...

    ADMMClassifier(2, privacy=PRIVATE, max_iter=2, verbose=Notes()).fit(X, Y)
    notes = [note for party, note in seen if party == "party2" and note]
    assert len(notes) == 2
    assert re.fullmatch(r"epsilon \d+(\.\d+)? of 30", notes[0])
    assert notes[1] == "epsilon 30 of 30"


def test_noise_is_fresh_even_with_a_fixed_random_state():
    first, second = (
        ADMMClassifier(2, privacy=PRIVATE, max_iter=3, random_state=0).fit(X, Y) for _ in range(2)
    )
    assert not np.allclose(first.decision_function(X), second.decision_function(X))


def test_the_published_noise_warns_and_claims_nothing():
    privacy = PRIVATE | {"mechanism": "paper"}
    with pytest.warns(UserWarning, match="protects nothing"):
        model = ADMMClassifier(2, privacy=privacy, max_iter=3).fit(X, Y)
    assert model.privacy_spent_["party1"][-1].epsilon == math.inf


def test_a_budget_file_is_charged_and_a_job_beyond_it_refused_at_that_owner(tmp_path):
    path = tmp_path / "party2.json"
    BudgetFile.create(path, epsilon=40.0, delta=1e-4)
    model = ADMMClassifier(
        2, privacy=PRIVATE, max_iter=3, budget_files={"party2": path}, random_state=0
    )
    model.fit(X, Y)
    (entry,) = BudgetFile(path).entries
    assert entry.rounds == 3
    assert BudgetFile(path).spent == pytest.approx(30.0, rel=1e-2)
    with pytest.raises(BudgetSpent, match=r"^party2: budget file .* allows epsilon 40 "):
        model.fit(X, Y)
    assert len(BudgetFile(path).entries) == 1


def test_budget_files_need_a_mechanism_with_a_price(tmp_path):
    BudgetFile.create(tmp_path / "a.json", epsilon=40.0, delta=1e-4)
    model = ADMMClassifier(
        2,
        privacy=PRIVATE | {"mechanism": "paper"},
        max_iter=2,
        budget_files={"party1": tmp_path / "a.json"},
    )
    with (
        pytest.warns(UserWarning, match="paper"),
        pytest.raises(InputError, match=r"^mechanism must be 'row'"),
    ):
        model.fit(X, Y)


def refused(pattern, model, values=X, labels=Y, weights=None):
    with pytest.raises(InputError, match=rf"^{pattern}") as caught:
        model.fit(values, labels, weights)
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "shards_")


PARAMETERS = [
    *(("rho", value, "a positive number or 'auto'") for value in (0, -1.0, "big", True)),
    *(("alpha", value, "a positive number or 'auto'") for value in (0, -1.0, None)),
    ("loss", "hinge", r"one of \['square', 'logistic', 'smooth_hinge', 'sigmoid'\]"),
    ("kernel", "laplace", r"one of 'gaussian', None, Gaussian\(...\)"),
    ("masking", "none", "one of 'pads', 'trees', None"),
    ("masking", "trees", "'pads' for two parties .*"),
    ("l1_ratio", 2.0, "a number from 0 to 1"),
    ("max_iter", 0, "a positive whole number or 'auto'"),
    ("max_iter", "all", "a positive whole number or 'auto'"),
    ("averaging", "yes", "True or False"),
    ("label_parties", "party9", r"some of the parties \['party1', 'party2'\]"),
    ("label_parties", ["party1", "party2"], "one party, which is the central node"),
    ("privacy", {"epsilon": 1.0}, "given with 'delta'"),
    ("privacy", 3, r"one of None, Privacy\(...\)"),
    ("budget_files", {"party1": "x"}, "None without privacy"),
    ("timeout", 0, "a positive number of seconds"),
]


@pytest.mark.parametrize(("name", "value", "allowed"), PARAMETERS)
def test_a_parameter_outside_its_range(name, value, allowed):
    model = ADMMClassifier(**{name: value})
    refused(f"{name} must be {allowed}, got {re.escape(repr(value))}$", model)


@pytest.mark.parametrize("value", [0, 1.5, True, "many"])
def test_a_kernel_without_components(value):
    with pytest.raises(InputError, match=r"^n_components must be a positive whole"):
        Gaussian(n_components=value)


BUDGETS = [
    ({"epsilon": 0}, {}, "epsilon must be a positive number"),
    ({"delta": 0.0}, {}, "delta must be a number above 0 and below 1, got 0"),
    ({"delta": 1.5}, {}, "delta must be a number above 0 and below 1, got 1.5"),
    ({"delta": 1 / 300}, {}, r"delta must be below 1 / rows = 0\.00333"),
    ({"bound": -1}, {}, "bound must be a positive number"),
    ({"mechanism": "column"}, {}, "mechanism must be one of 'row', 'paper'"),
    ({}, {"scale": "standard"}, "scale must be None with privacy"),
    ({}, {"kernel": "gaussian"}, "bandwidth must be a number with privacy"),
    ({}, {"l1_ratio": 1.0}, "l1_ratio must be 0 with privacy"),
    ({}, {"budget_files": {"party9": "x"}}, "budget_files must be for some of the parties"),
    ({}, {"budget_files": 3}, "budget_files must be a mapping"),
    ({}, {"budget_files": {"party1": "absent.json"}}, "budget file must exist"),
    ({"epsilon": 90.0, "delta": 1e-9}, {}, "epsilon must be small enough for the noise sampler"),
    ({"epsilon": 1e-6}, {}, r"epsilon must be larger, or rows fewer than 300: .*, got 1e-06$"),
]


@pytest.mark.parametrize(("changes", "others", "said"), BUDGETS)
def test_a_budget_that_cannot_be(changes, others, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(said, ADMMClassifier(privacy=PRIVATE | changes, **others))


def test_rows_of_zeros_cannot_be_normalised():
    values = X.copy()
    values[7, 3:] = 0
    refused(
        r"columns of party 'party2' must hold a number other than zero in each row, got row 7",
        ADMMClassifier(privacy=PRIVATE),
        values,
    )


def test_a_new_row_of_zeros_is_predicted_by_the_others():
    model = ADMMClassifier(2, privacy=PRIVATE, max_iter=2, fit_intercept=False).fit(X, Y)
    rows = X[:4].copy()
    rows[2, 3:] = 0
    found = model.decision_function(rows)
    x = model.shards_["party1"].coefficients[:, 0]
    assert found[2] == pytest.approx(rows[2, :3] / np.linalg.norm(rows[2, :3]) @ x, abs=1e-6)


def test_the_published_noise_takes_no_weights():
    model = ADMMClassifier(privacy=PRIVATE | {"mechanism": "paper"})
    with pytest.warns(UserWarning, match="protects nothing"):
        refused(
            "sample_weight must be None with mechanism='paper'", model, weights=np.arange(300) + 1.0
        )


def test_private_training_with_weights_learns_what_counts():
    """Half of the rows have flipped labels and next to no weight; one has none at all."""
    labels = np.where(np.arange(300) < 150, Y, 1 - Y)
    weights = np.where(np.arange(300) < 150, 1.0, 1e-3)
    weights[299] = 0
    model = ADMMClassifier(2, privacy=PRIVATE, max_iter=3, alpha=1e-2)
    assert model.fit(X, labels, sample_weight=weights).score(X, Y) > 0.75
    for spent in model.privacy_spent_.values():
        assert spent[-1].epsilon == pytest.approx(30.0, rel=1e-2)


def test_private_training_on_sparse_columns_is_that_on_dense_ones(monkeypatch):
    monkeypatch.setattr(
        lattice_gaussian, "fresh_noise", lambda width, shape: np.zeros(shape, np.int64)
    )
    model = ADMMClassifier(2, privacy=PRIVATE, max_iter=3, alpha=1e-2)
    dense = model.fit(X, Y).decision_function(X)
    found = model.fit(sparse.csr_array(X), Y).decision_function(sparse.csr_array(X))
    np.testing.assert_allclose(found, dense, atol=1e-5)


def test_private_regression_learns_within_its_budget():
    generator = np.random.default_rng(1)
    columns = generator.normal(size=(3000, 4))
    targets = 50 + 7 * columns[:, 0] - 5 * columns[:, 3] + generator.normal(size=3000)
    model = ADMMRegressor(
        2, privacy={"epsilon": 30.0, "delta": 1e-5, "bound": 3.0}, max_iter=3, random_state=0
    ).fit(columns, targets)
    assert model.score(columns, targets) > 0.7  # rows of length one are not linear in X any more
    for spent in model.privacy_spent_.values():
        assert spent[-1].epsilon == pytest.approx(30.0, rel=1e-2)
    for shard in model.shards_.values():
        assert np.linalg.norm(shard.coefficients) <= 3.0 * (1 + 1e-9)


def test_labels_of_one_class():
    refused("y must hold at least two classes, got one", ADMMClassifier(), labels=np.ones(300))
    weights = (Y == 1).astype(float)
    refused(
        "y must hold at least two classes in rows of positive", ADMMClassifier(), weights=weights
    )


def test_a_rho_below_the_curvature_of_a_loss_that_is_not_convex():
    refused("rho must be above 0.09623", ADMMClassifier(loss="sigmoid", rho=0.05))


def test_the_assumption_is_reported():
    model = ADMMClassifier(2, averaging=False, scale="standard", tol=0.1).fit(X, Y)
    assert model.assumptions_["party1"]["rho"]
    assert model.assumptions_["party1"]["full column rank"]
    model.set_params(rho=0.01, averaging=True, tol=0.1).fit(X, Y)
    assert not model.assumptions_["party1"]["rho"]
    doubled = np.hstack((X[:, :1], X))
    model.set_params(rho="auto").fit(sparse.csr_array(doubled), Y)
    assert set(model.assumptions_["party1"]) == {"rho"}
    model.fit(doubled, Y)
    assert not model.assumptions_["party1"]["full column rank"]


def test_class_weights():
    model = ADMMClassifier(2, class_weight="balanced", alpha=1 / 300, tol=1e-7)
    rare = (X[:, 0] > 1).astype(int)
    model.set_params(max_iter=3000).fit(X, rare)
    # scikit-learn sums weights, this takes their mean: they add up to the number of rows.
    expected = LogisticRegression(class_weight="balanced", tol=1e-9).fit(X, rare)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=2e-3)
