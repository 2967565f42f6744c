"""FDSKL Lemma 1: the federation's iterates are those of DSG in one place, step by step.

Algorithm 3 gives ωᵀx + b exactly, so with the same draws Algorithm 1 must pass through the very
coefficients of eq. (7) on pooled columns. Each test compares all coefficients after every step.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.naive.dsg import dsg
from tests.naive.phases import batch, features
from tests.naive.pooled import pooled_phases
from tests.options import grouped
from vertikal import FDSKLClassifier, FDSKLRegressor, Fourier, Stochastic

ROWS = 40
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 7))
Y = (X[:, 0] * X[:, 4] + 0.3 * X[:, 6] > 0).astype(int)
PARTIES = {"bank": [0, 5], "shop": [1, 2, 6], "phone": [3, 4]}

# Several label parties add up partial predictions in fixed point of 36 fraction bits.
TOLERANCE = 1e-7


def federation(steps, estimator=FDSKLClassifier, **settings):
    given = {
        "parties": PARTIES,
        "solver": Stochastic(batch_size=1, block_size=1, step_size=0.7, n_steps=steps),
        "n_components": 12,
        "alpha": 0.05,
        "bandwidth": 1.5,
        "random_state": 3,
        "timeout": 20,
    }
    return estimator(**grouped(**(given | settings)))


def centralised(model, targets, weights, steps):
    """The coefficients of eq. (7) after each step, in the package's unit (α·√D)."""
    settings, kind = model.settings_, model.settings_.feature_map
    # Of mean square 1 each, whatever their number per phase.
    unit = math.sqrt(kind.per_phase)
    blocks = {
        owner: unit * features(phases, kind.functions, kind.harmonics)
        for owner, phases in pooled_phases(model, X).items()
    }
    runs = dsg(
        blocks,
        targets,
        weights,
        lambda owner, number: batch(model.shards_[owner], number, ROWS),
        loss=settings.loss,
        step_size=settings.solver.step_size,
        penalty=settings.alpha,
        block=settings.solver.block_size,
        steps=steps,
    )
    scale = math.sqrt(settings.n_components * kind.per_phase)
    return [{o: np.array(a) * scale for o, a in alphas.items()} for alphas in runs]


def assert_same_steps(steps, y, targets, weights=None, estimator=FDSKLClassifier, **settings):
    """Fit with 1, 2, … ``steps`` steps; each fit must stop where the centralised run passes."""
    expected = None
    for step in range(1, steps + 1):
        model = federation(step, estimator, **settings).fit(X, y, weights)
        if expected is None:
            even = np.ones(ROWS) if weights is None else weights
            expected = centralised(model, targets, even.tolist(), steps)
        for owner, coefficients in expected[step - 1].items():
            found = model.shards_[owner].coefficients
            np.testing.assert_allclose(found, coefficients, rtol=0, atol=TOLERANCE)
            if step >= 2 * len(expected[0]):
                assert np.abs(found).max() > 0.01
        for name, shard in model.shards_.items():
            assert (shard.coefficients is None) == (name not in expected[0])


def signs(y):
    return np.where(y[:, None] == 1, 1.0, -1.0)


@pytest.mark.parametrize("label_parties", [["bank"], ["phone"], ["bank", "phone"], 3])
@pytest.mark.parametrize("loss", ["logistic", "square", "smooth_hinge"])
def test_one_sample_and_one_direction_a_step(loss, label_parties):
    assert_same_steps(8, Y, signs(Y), loss=loss, label_parties=label_parties)


@pytest.mark.parametrize("label_parties", [["shop"], ["shop", "bank"]])
def test_several_samples_and_directions_a_step(label_parties):
    assert_same_steps(
        5, Y, signs(Y), solver__batch_size=4, solver__block_size=3, label_parties=label_parties
    )


@pytest.mark.parametrize("label_parties", [["bank"], 3])
@pytest.mark.parametrize("loss", ["logistic", "square", "smooth_hinge"])
def test_algorithm_3_over_two_trees(loss, label_parties):
    assert_same_steps(6, Y, signs(Y), loss=loss, label_parties=label_parties, masking="trees")


@pytest.mark.parametrize("label_parties", [["shop"], ["shop", "bank"]])
@pytest.mark.parametrize(
    "kind", [{"functions": "pair"}, {"functions": "pair", "harmonics": (1, 2)}]
)
def test_several_features_of_each_phase(label_parties, kind):
    assert_same_steps(
        9,
        Y,
        signs(Y),
        n_components=6,
        feature_map=Fourier(**kind),
        solver__batch_size=4,
        solver__block_size=3,
        label_parties=label_parties,
    )


@pytest.mark.parametrize("label_parties", [["bank"], ["bank", "phone"]])
def test_more_steps_than_directions_begin_again(label_parties):
    steps = 2 * 4 + 3
    assert_same_steps(steps, Y, signs(Y), n_components=4, label_parties=label_parties)


def test_the_last_block_may_be_narrower():
    assert_same_steps(5, Y, signs(Y), n_components=7, solver__block_size=3, solver__batch_size=2)


@pytest.mark.parametrize("directions", ["private", "shared"])
@pytest.mark.parametrize("kernel", ["laplace", "matern52"])
@pytest.mark.filterwarnings("ignore:directions='shared':UserWarning")
def test_other_kernels_and_shared_directions(kernel, directions):
    assert_same_steps(4, Y, signs(Y), kernel=kernel, feature_map__directions=directions)


@pytest.mark.parametrize("ring_bits", [16, 32])
def test_wider_rings(ring_bits):
    assert_same_steps(4, Y, signs(Y), feature_map__bits=ring_bits, label_parties=2)


def test_weighted_rows():
    weights = np.random.default_rng(5).integers(1, 5, ROWS).astype(float)
    assert_same_steps(6, Y, signs(Y), weights, solver__batch_size=3)


def test_several_classes_share_their_phases():
    y = np.digitize(X[:, 0] + X[:, 3], [-0.7, 0.7])
    targets = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    assert_same_steps(5, y, targets, solver__batch_size=2, solver__block_size=2, label_parties=2)


def test_regression_in_standardised_units():
    y = 100 + 7 * X[:, 1] * X[:, 2]
    targets = ((y - y.mean()) / y.std())[:, None]
    assert_same_steps(5, y, targets, estimator=FDSKLRegressor, solver__batch_size=2)


@pytest.mark.parametrize("scale", ["standard", "minmax", "max"])
def test_columns_scaled_by_their_parties(scale):
    assert_same_steps(4, Y, signs(Y), scale=scale)


def test_another_seed_is_another_run():
    """The comparison is not empty: a different draw gives different coefficients."""
    one, two = (federation(6, random_state=seed).fit(X, Y) for seed in (3, 4))
    gap = one.shards_["bank"].coefficients - two.shards_["bank"].coefficients
    assert np.abs(gap).max() > 0.1
