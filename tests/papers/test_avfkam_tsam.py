"""The run in turns passes through the coefficients of TSAM on pooled columns.

Each test compares all coefficients after every step, with the same draws of pairs and directions.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.naive.phases import cosines
from tests.naive.pooled import pooled_phases
from tests.naive.tsam import pairs_of, tsam
from tests.options import grouped
from vertikal import AVFKAMClassifier, Stochastic

ROWS = 40
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 7))
Y = (X[:, 0] * X[:, 4] + 0.3 * X[:, 6] > 0.5).astype(int)
PARTIES = {"bank": [0, 5], "shop": [1, 2, 6], "phone": [3, 4]}
TOLERANCE = 1e-7  # several label parties add up in fixed point of 36 fraction bits
LOSSES = ["squared_hinge", "square", "logistic"]


def federation(steps, **settings):
    given = {
        "parties": PARTIES,
        "solver": Stochastic(
            schedule="turns",
            batch_size=1,
            block_size=1,
            step_size=0.3,
            n_steps=steps,
        ),
        "n_components": 12,
        "alpha": 0.05,
        "bandwidth": 1.5,
        "validation": 0.0,
        "random_state": 3,
        "timeout": 20,
    }
    return AVFKAMClassifier(**grouped(**(given | settings)))


def centralised(model, weights, steps):
    settings = model.settings_
    features = {owner: cosines(p) for owner, p in pooled_phases(model, X).items()}
    classes = [np.flatnonzero((k == Y) & (weights > 0)).tolist() for k in (1, 0)]
    shares = {}
    for rows in classes:
        mean = sum(weights[i] for i in rows) / len(rows)
        shares.update({i: weights[i] / mean for i in rows})
    runs = tsam(
        features,
        shares,
        lambda owner, number: pairs_of(model.shards_[owner], number, *classes),
        loss=settings.loss,
        step_size=settings.solver.step_size,
        penalty=settings.alpha,
        block=settings.solver.block_size,
        steps=steps,
    )
    scale = math.sqrt(settings.n_components)
    return [{o: np.array(a) * scale for o, a in alphas.items()} for alphas in runs]


def assert_same_steps(steps, weights=None, **settings):
    """Fit with 1, 2, … ``steps`` steps; each fit must stop where the centralised run passes."""
    even = np.ones(ROWS) if weights is None else weights
    expected = None
    for step in range(1, steps + 1):
        model = federation(step, **settings).fit(X, Y, weights)
        expected = expected or centralised(model, even, steps)
        for owner, coefficients in expected[step - 1].items():
            found = model.shards_[owner].coefficients
            np.testing.assert_allclose(found, coefficients, rtol=0, atol=TOLERANCE)
            if step >= 2 * len(expected[0]):
                assert np.abs(found).max() > 0.01


@pytest.mark.parametrize("label_parties", [["bank"], ["bank", "phone"], 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_one_pair_and_one_direction_a_step(loss, label_parties):
    assert_same_steps(8, loss=loss, label_parties=label_parties)


@pytest.mark.parametrize("label_parties", [["shop"], ["shop", "bank"]])
def test_several_pairs_and_directions_a_step(label_parties):
    assert_same_steps(5, solver__batch_size=4, solver__block_size=3, label_parties=label_parties)


def test_appendix_c_over_two_trees():
    assert_same_steps(6, label_parties=3, masking="trees")


def test_weighted_rows():
    weights = np.random.default_rng(5).integers(0, 4, ROWS).astype(float)
    assert_same_steps(6, weights, solver__batch_size=3, label_parties=2)


def test_one_label_party_is_tsam_whatever_the_schedule():
    """With nobody to wait for, the asynchronous schedule is the synchronous one."""
    one, two = (
        federation(6, label_parties=1, solver__schedule=schedule).fit(X, Y)
        for schedule in ("turns", "async")
    )
    first, second = (model.shards_["bank"].coefficients for model in (one, two))
    np.testing.assert_array_equal(first, second)


def test_another_seed_is_another_run():
    """The comparison is not empty: a different draw gives different coefficients."""
    one, two = (federation(6, random_state=seed).fit(X, Y) for seed in (3, 4))
    gap = one.shards_["bank"].coefficients - two.shards_["bank"].coefficients
    assert np.abs(gap).max() > 0.05
