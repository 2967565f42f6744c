"""VFKAM, AVFKAM Figure 2 (a): all label parties step at the same time, then wait.

The coefficients are compared with those of a plain run of rounds on pooled columns.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.naive.dsg import dsg
from tests.naive.phases import batch, cosines
from tests.naive.pooled import pooled_phases
from tests.naive.tsam import pairs_of, tsam
from tests.options import grouped
from vertikal import AVFKAMClassifier, FDSKLClassifier, Stochastic
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.stochastic.barrier import rounds

ROWS = 40
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 7))
Y = (X[:, 0] * X[:, 4] + 0.3 * X[:, 6] > 0.5).astype(int)
PARTIES = {"bank": [0, 5], "shop": [1, 2, 6], "phone": [3, 4]}
STEP, PENALTY = 0.3, 0.5
"""A large penalty: how often old coefficients decay must show."""


def federation(estimator, steps, **settings):
    given = {
        "parties": PARTIES,
        "solver": Stochastic(
            schedule="barrier", batch_size=2, block_size=2, step_size=STEP, n_steps=steps
        ),
        "n_components": 13,
        "alpha": PENALTY,
        "bandwidth": 1.5,
        "random_state": 3,
        "timeout": 20,
    }
    if estimator is AVFKAMClassifier:
        given["validation"] = 0.0
    return estimator(**grouped(**(given | settings)))


def plain(model, steps):
    features = {owner: cosines(p) for owner, p in pooled_phases(model, X).items()}
    common = {"step_size": STEP, "penalty": PENALTY, "block": 2, "steps": steps, "together": True}
    if isinstance(model, AVFKAMClassifier):
        classes = [np.flatnonzero(k == Y).tolist() for k in (1, 0)]
        return tsam(
            features,
            dict.fromkeys(range(ROWS), 1.0),
            lambda owner, number: pairs_of(model.shards_[owner], number, *classes),
            loss="squared_hinge",
            **common,
        )
    return dsg(
        features,
        np.where(Y[:, None] == 1, 1.0, -1.0),
        [1.0] * ROWS,
        lambda owner, number: batch(model.shards_[owner], number, ROWS),
        loss="logistic",
        **common,
    )


@pytest.mark.parametrize("estimator", [AVFKAMClassifier, FDSKLClassifier])
@pytest.mark.parametrize("label_parties", [["bank"], ["bank", "phone"], 3])
@pytest.mark.parametrize("steps", [3, 9, 16])
def test_a_round_is_that_of_the_plain_run(estimator, label_parties, steps):
    model = federation(estimator, steps, label_parties=label_parties).fit(X, Y)
    expected = list(plain(model, steps))[-1]
    for owner, alphas in expected.items():
        found = model.shards_[owner].coefficients
        np.testing.assert_allclose(found, np.array(alphas) * math.sqrt(13), atol=1e-7)
        assert np.abs(found).max() > 0.01


def test_it_is_another_run_than_that_in_turns():
    one, two = (
        federation(AVFKAMClassifier, 12, label_parties=3, solver__schedule=schedule).fit(X, Y)
        for schedule in ("barrier", "turns")
    )
    gap = one.shards_["bank"].coefficients - two.shards_["bank"].coefficients
    assert np.abs(gap).max() > 1e-3


def test_all_read_before_any_writes():
    """In a round of three, each reading misses the steps of the two others, and no more."""
    model = federation(AVFKAMClassifier, 12, label_parties=3, n_components=12).fit(X, Y)
    assert model.staleness_ == {name: {2: 4} for name in PARTIES}
    assert sum(model.updates_.values()) == 12


def test_a_party_whose_directions_are_used_up_sits_a_round_out():
    names = ("a", "b", "c")
    options = grouped(solver="dsg", solver__block_size=2, n_components=10, solver__n_steps=11)
    settings = FdsklSettings(parties=names, label_parties=names, **options)
    assert settings.widths() == {"a": 4, "b": 3, "c": 3}
    assert [list(one) for one in rounds(settings)] == [["a", "b", "c"]] * 3 + [["a", "b"]]
    narrow = grouped(solver="dsg", solver__block_size=1, n_components=5, solver__n_steps=8)
    settings = FdsklSettings(parties=names, label_parties=names, **narrow)
    assert [list(one) for one in rounds(settings)] == [
        ["a", "b", "c"],
        ["a", "b"],
        ["a", "b", "c"],
    ]
