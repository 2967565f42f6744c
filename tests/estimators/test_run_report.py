"""The report of a run as one HTML page: its curves are those of the live view."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from tests.algorithms.kernel_machine.pacing import Balanced, Vanishing
from vertikal import AVFKAMClassifier, Stochastic

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
