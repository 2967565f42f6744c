"""AVFKAM Algorithm 1, lines 4 and 5, in the order in which they happened.

Every own update is recorded with the number of updates, of whomever, that its party knew of at that
moment. From these alone follow the coefficients at the end: each shrinks by 1 − γλ for every update
that its party has heard of since, its own and those that the others announced.
"""

from __future__ import annotations

import threading
from collections import defaultdict

import numpy as np
import pytest

from tests.algorithms.kernel_machine.pacing import Balanced
from tests.naive.losses import PLAIN
from tests.naive.pairwise import PLAIN_PAIRS
from tests.naive.phases import cosines
from tests.naive.pooled import pooled_phases
from vertikal import AVFKAMClassifier, FDSKLClassifier, Stochastic
from vertikal.algorithms.kernel_machine.avfkam import PairUpdate
from vertikal.algorithms.kernel_machine.fdskl import RowUpdate
from vertikal.algorithms.kernel_machine.stochastic.learner import Learner

ROWS, D, STEPS = 50, 24, 40
STEP, PENALTY = 0.2, 0.5
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 6))
Y = (X[:, 0] * X[:, 3] > 0.2).astype(int)
NAMES = ("bank", "shop", "phone")
PARTIES = {name: [2 * place, 2 * place + 1] for place, name in enumerate(NAMES)}


@pytest.fixture
def recorded(monkeypatch):
    """By thread, that is by party: (columns, change, updates known before), and (rows, f)."""
    updates, readings = defaultdict(list), defaultdict(list)
    add = Learner.add

    def adding(self, columns, change):
        me = threading.current_thread().name
        updates[me].append((columns, np.array(change), self.total))
        add(self, columns, change)

    monkeypatch.setattr(Learner, "add", adding)
    for rule in (RowUpdate, PairUpdate):
        gradient = rule.gradient

        def recording(self, batch, rows, f, columns, gradient=gradient):
            readings[threading.current_thread().name].append((np.array(rows), np.array(f)))
            return gradient(self, batch, rows, f, columns)

        monkeypatch.setattr(rule, "gradient", recording)
    return updates, readings


def own_change(estimator, features, rows, f):
    """−γ·(the gradient), written out, for the columns of one block; in the package's unit."""
    change = np.zeros(features.shape[1])
    if estimator is AVFKAMClassifier:
        pairs = len(rows) // 2
        for place in range(pairs):
            up, down = rows[place], rows[pairs + place]
            _, first, second = PLAIN_PAIRS["square"](f[place, 0], f[pairs + place, 0])
            change += (first * features[up] + second * features[down]) / pairs
    else:
        for row, value in zip(rows, f[:, 0], strict=True):
            change += PLAIN["square"](value, 1.0 if Y[row] else -1.0)[1] * features[row] / len(rows)
    return -STEP * change / features.shape[1] * np.sqrt(D)


@pytest.mark.parametrize("estimator", [AVFKAMClassifier, FDSKLClassifier])
@pytest.mark.parametrize("label_parties", [2, 3])
def test_replayed_updates_give_the_coefficients(recorded, estimator, label_parties):
    names = NAMES[:label_parties]
    solver = Stochastic(schedule="async", step_size=STEP, n_steps=STEPS, batch_size=4, block_size=4)
    extra = {"validation": 0.0} if estimator is AVFKAMClassifier else {}
    model = estimator(
        PARTIES,
        label_parties=list(names),
        n_components=D,
        alpha=PENALTY,
        bandwidth=1.5,
        loss="square",
        solver=solver,
        random_state=0,
        timeout=20,
        verbose=Balanced(names, STEPS),
        **extra,
    ).fit(X, Y)
    updates, readings = recorded
    phases = pooled_phases(model, X)
    for name in names:
        (mine,) = [one for thread, one in updates.items() if name in thread]
        (read,) = [one for thread, one in readings.items() if name in thread]
        shard = model.shards_[name]
        total = shard.training.iterations
        assert total >= STEPS
        assert len(mine) == len(read) == sum(shard.training.staleness.values())
        expected = np.zeros_like(shard.coefficients)
        features = cosines(phases[name])
        for (columns, change, before), (rows, f) in zip(mine, read, strict=True):
            np.testing.assert_allclose(
                change[:, 0], own_change(estimator, features[:, columns], rows, f), atol=1e-6
            )
            # Its own update is the one after those known before; all later ones shrink it.
            expected[columns] += change * (1 - STEP * PENALTY) ** (total - before - 1)
        np.testing.assert_allclose(shard.coefficients, expected, atol=1e-9)
        assert np.abs(expected).max() > 1e-3
        # The others' updates were heard of between the own ones, not only at the end.
        known = [before for *_, before in mine]
        assert known[-1] > len(mine)
