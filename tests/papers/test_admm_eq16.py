"""ADMM eq. (16) as printed, round by round: ``mechanism="paper"`` with ``averaging=False``.

The noise that every party drew is recorded and given to the plain twin.
"""

from __future__ import annotations

import threading
from collections import defaultdict

import numpy as np
import pytest
from scipy.linalg import inv, sqrtm

from tests.naive.admm import admm as plain_admm
from vertikal import ADMMClassifier
from vertikal.algorithms.admm.settings import AdmmSettings, Privacy
from vertikal.data.tables import Table
from vertikal.privacy.accountant import corollary1_round, theorem3_deviation
from vertikal.privacy.sensitivity import lemma1_sensitivity
from vertikal.secure import lattice_gaussian

GENERATOR = np.random.default_rng(3)
ROWS, RHO = 80, 0.4
X = GENERATOR.normal(size=(ROWS, 7))
SIGNS = np.where(X[:, 0] - X[:, 4] + 0.5 * GENERATOR.normal(size=ROWS) > 0, 1.0, -1.0)
PARTIES = {"bank": [0, 1, 2], "shop": [3, 4], "clinic": [5, 6]}
PRIVACY = Privacy(epsilon=40.0, delta=1e-3, bound=2.0, mechanism="paper")


@pytest.fixture
def drawn(monkeypatch):
    """Noise by party and round, in units of its deviation."""
    found = defaultdict(list)
    real = lattice_gaussian.fresh_noise

    def fresh_noise(width, shape):
        numbers = real(width, shape)
        found[threading.current_thread().name].append(numbers / width)
        return numbers

    monkeypatch.setattr(lattice_gaussian, "fresh_noise", fresh_noise)
    return found


def unit_rows(values):
    return values / np.linalg.norm(values, axis=1, keepdims=True)


@pytest.mark.parametrize("averaging", [False, True])
@pytest.mark.parametrize("rounds", [1, 2, 9])
@pytest.mark.filterwarnings("ignore:mechanism='paper':UserWarning")
def test_every_round_is_equation_16(drawn, rounds, averaging):
    model = ADMMClassifier(
        PARTIES,
        privacy=PRIVACY,
        averaging=averaging,
        fit_intercept=False,
        alpha=1 / ROWS,
        rho=RHO,
        max_iter=rounds,
        timeout=20,
    ).fit(X, SIGNS)
    matrices = {name: unit_rows(X[:, columns]) for name, columns in PARTIES.items()}
    noise = {}
    for name, D in matrices.items():
        (mine,) = [numbers for thread, numbers in drawn.items() if name in thread]
        assert len(mine) == rounds
        sensitivity = lemma1_sensitivity(D.shape[1], RHO, 1.0, 3, 2.0)
        deviation = theorem3_deviation(*corollary1_round(40.0, 1e-3, rounds), sensitivity)
        root = np.real(sqrtm(inv(D.T @ D)))
        noise[name] = [deviation * root @ one[:, 0] for one in mine]
    *_, last = plain_admm(
        matrices,
        {name: np.ones(D.shape[1], bool) for name, D in matrices.items()},
        SIGNS,
        loss="logistic",
        penalty=1.0,
        rho=RHO,
        averaging=averaging,
        rounds=rounds,
        noise=lambda name, number: noise[name][number],
    )
    for name, shard in model.shards_.items():
        np.testing.assert_allclose(shard.coefficients[:, 0], last.x[name], atol=1e-4)
        columns = tuple(map(str, PARTIES[name]))
        design = shard.features.design(Table(name, columns, X[:, PARTIES[name]]))
        np.testing.assert_allclose(design.forward(np.eye(len(columns))), matrices[name], atol=1e-9)
    if rounds > 1:
        # Nothing is cut: the noise alone carries x beyond the bound's ball.
        assert max(np.abs(x).max() for x in last.x.values()) > 0.05
    else:
        # From x = y = z = 0 the first step stays there; none comes for free after it.
        assert all(np.abs(s.coefficients).max() < 1e-9 for s in model.shards_.values())


@pytest.mark.filterwarnings("ignore:mechanism='paper':UserWarning")
def test_nothing_is_clipped():
    """Of a bound of one hundredth only the noise knows: coefficients are as without privacy."""
    small = Privacy(epsilon=1e9, delta=0.9 / ROWS, bound=0.01, mechanism="paper")
    common = {"fit_intercept": False, "alpha": 1 / ROWS, "rho": RHO, "max_iter": 40, "tol": 1e-9}
    noisy = ADMMClassifier(PARTIES, privacy=small, **common).fit(X, SIGNS)
    largest = max(np.abs(s.coefficients).max() for s in noisy.shards_.values())
    assert largest > 0.5


def test_rounds_by_default():
    common = {"parties": ("a", "b"), "label_parties": ("a",)}
    row = Privacy(epsilon=1.0, delta=1e-5)
    assert AdmmSettings(**common, privacy=row).most_rounds == 1
    assert AdmmSettings(**common, privacy=PRIVACY).most_rounds == 20
    assert AdmmSettings(**common, privacy=row).step_bound == 4.0
    assert AdmmSettings(**common, privacy=PRIVACY).step_bound is None
