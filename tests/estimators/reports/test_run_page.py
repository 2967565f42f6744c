"""The report of a run as one HTML page: its curves are those of the live view."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from tests.algorithms.kernel_machine.pacing import Balanced, Vanishing
from vertikal import (
    ADMMClassifier,
    AVFKAMClassifier,
    FDSKLClassifier,
    FDSKLRegressor,
    KernelClassifier,
    SecureKernelSVC,
    Stochastic,
)
from vertikal.errors import InputError

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(300, 6))
Y = X[:, 0] * X[:, 3] > 0.3


def make(**settings):
    given = {"parties": 3, "n_components": 48, "validation": 0.25, "random_state": 0}
    return AVFKAMClassifier(**(given | settings))


def test_an_asynchronous_run_shows_updates_staleness_and_auc(tmp_path):
    pace = Balanced(("party1", "party2"), 80)
    model = make(solver=Stochastic(n_steps=80, block_size=16), label_parties=2, verbose=pace).fit(
        X, Y
    )
    path = model.write_report(tmp_path / "run.html")
    text = path.read_text()
    for words in (
        "AUC on the held-out rows",
        "Updates by label party",
        "Staleness by label party",
        "Who sent what to whom in training",
        "row numbers of a batch",
        "oldest reading",
        "max_staleness",
    ):
        assert words in text
    assert f"{model.curve_[-1].auc:.4f}" in text
    assert f"{sum(model.updates_.values()):,}" in text
    assert "vanished" not in text.split("Settings")[0]


def test_an_exact_run_shows_its_objective_and_its_pairs(tmp_path):
    model = make().fit(X, Y)
    text = model.write_report(tmp_path / "run.html").read_text()
    assert "Objective by iteration" in text
    assert model.pairs_ in text
    assert "Staleness" not in text


def test_who_vanished_is_said(tmp_path):
    model = make(
        solver=Stochastic(n_steps=60, allow_missing=True),
        label_parties=3,
        verbose=Vanishing("party2"),
    )
    with pytest.warns(UserWarning, match="vanished"):
        model.fit(X, Y)
    text = model.write_report(tmp_path / "run.html").read_text()
    assert "vanished" in text.split("Settings")[0]


def test_before_fit_there_is_nothing_to_report(tmp_path):
    with pytest.raises(NotFittedError):
        make().write_report(tmp_path / "run.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        (FDSKLClassifier(3, n_components=48, random_state=0), ("ROC", "Calibration")),
        (FDSKLClassifier(3, n_components=48, loss="smooth_hinge", random_state=0), ("ROC",)),
        (ADMMClassifier(3, random_state=0), ("ROC", "Calibration")),
        (KernelClassifier(3, n_components=32, random_state=0), ("ROC", "Calibration")),
        (SecureKernelSVC(3), ("ROC", "Gain")),
    ],
)
def test_rows_held_out_are_measured_on_the_page(tmp_path, model, kinds):
    model.fit(X[:200], Y[:200])
    text = model.write_report(tmp_path / "run.html", X[200:], Y[200:]).read_text()
    auc = roc_auc_score(Y[200:], model.decision_function(X[200:]))
    assert f"{auc:.3f} (" in text
    assert "Measured on 100 rows" in text
    for kind in kinds:
        assert f"Line chart: {kind}." in text
    assert ("Line chart: Calibration." in text) == ("Calibration" in kinds)
    assert "How good it is" not in model.write_report(tmp_path / "run.html").read_text()


def test_numbers_and_several_classes_are_measured_on_the_page(tmp_path):
    numbers = FDSKLRegressor(3, n_components=48, random_state=0).fit(X[:200], X[:200, 1])
    text = numbers.write_report(tmp_path / "run.html", X[200:], X[200:, 1]).read_text()
    assert "R², rows given" in text
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    model = FDSKLClassifier(3, n_components=48, random_state=0).fit(X[:200], three[:200])
    text = model.write_report(tmp_path / "run.html", X[200:], three[200:]).read_text()
    assert "Scores of class 2" in text
    with pytest.raises(InputError, match="y must be some of the classes"):
        model.write_report(tmp_path / "run.html", X[200:], three[200:] + 7)
    with pytest.raises(InputError, match="given with X"):
        model.write_report(tmp_path / "run.html", X[200:])
