"""DSG and TSAM step by step against plain loops on the same features and rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.naive.losses import PLAIN
from tests.naive.pairwise import PLAIN_PAIRS
from vertikal.baselines.doubly_stochastic import DSGClassifier, TSAMClassifier
from vertikal.data.tables import Table
from vertikal.errors import InputError

ROWS, D = 40, 10
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 3))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
SIGNS = np.where(Y == 1, 1.0, -1.0)


def plain(model, batches, steps):
    """α (D,) of φ/√D after each of ``batches``, one number at a time."""
    phi = model.feature_map_.local(Table("p", ("a", "b", "c"), X).block(slice(0, ROWS)))
    phi = phi.astype(float)
    a = [0.0] * D
    for number, rows in enumerate(batches):
        step = steps(number)
        block = range(number * 3 % 12, min(number * 3 % 12 + 3, D))
        f = {i: sum(a[j] * phi[i, j] for j in range(D)) for i in rows}
        change = dict.fromkeys(block, 0.0)
        if isinstance(model, TSAMClassifier):
            pairs = len(rows) // 2
            for up, down in zip(rows[:pairs], rows[pairs:], strict=True):
                _, first, second = PLAIN_PAIRS["squared_hinge"](f[up], f[down])
                for j in block:
                    change[j] += (first * phi[up, j] + second * phi[down, j]) / pairs
        else:
            for i in rows:
                for j in block:
                    change[j] += PLAIN["logistic"](f[i], SIGNS[i])[1] * phi[i, j] / len(rows)
        a = [value * (1 - step * 0.3) for value in a]
        for j in block:
            a[j] -= step * D / len(block) * change[j]
    return np.array(a)


def batches_of(estimator, seed, count):
    """The rows of each step, drawn again as the estimator draws them."""
    generator = np.random.RandomState(seed)
    generator.bytes(7)  # the directions' seed
    if estimator is DSGClassifier:
        return [generator.randint(0, ROWS, 4) for _ in range(count)]
    ups, downs = (np.flatnonzero(k == Y) for k in (1, 0))
    return [
        np.concatenate([generator.choice(rows, 4) for rows in (ups, downs)]) for _ in range(count)
    ]


@pytest.mark.parametrize("estimator", [DSGClassifier, TSAMClassifier])
@pytest.mark.parametrize(
    ("kind", "steps"),
    [("constant", lambda number: 0.8), ("1/t", lambda number: 0.8 / (number + 1))],
)
@pytest.mark.parametrize("count", [7, 12], ids=["features by step", "features kept"])
def test_every_step_is_the_plain_one(estimator, kind, steps, count):
    model = estimator(
        n_components=D,
        alpha=0.3,
        steps=kind,
        step_size=0.8,
        n_steps=count,
        batch_size=4,
        block_size=3,
        bandwidth=1.2,
        random_state=3,
    ).fit(X, Y)
    expected = plain(model, batches_of(estimator, 3, count), steps)
    np.testing.assert_allclose(model.coefficients_[:, 0], expected, atol=1e-6)
    assert np.abs(expected).max() > 0.05


@pytest.mark.parametrize("estimator", [DSGClassifier, TSAMClassifier])
def test_they_learn(estimator):
    X = GENERATOR.normal(size=(800, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = estimator(n_components=512, n_steps=150, alpha=1e-4, random_state=0)
    model.fit(X[:600], y[:600])
    assert roc_auc_score(y[600:], model.decision_function(X[600:])) > 0.85
    assert model.predict(X[600:]).shape == (200,)


def test_two_classes_only():
    with pytest.raises(InputError, match="y must be of two classes, got 3 classes"):
        DSGClassifier().fit(X, np.arange(ROWS) % 3)
