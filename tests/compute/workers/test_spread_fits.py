"""Fits whose parties have workers, against the same fits in threads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from vertikal import (
    AVFKAMClassifier,
    FDSKLClassifier,
    FDSKLRegressor,
    Fourier,
    Stochastic,
    Workers,
)
from vertikal.compute.workers.worker_group import WorkerGroup
from vertikal.errors import InputError

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(5000, 8))
Y = X[:, 0] * X[:, 5] + 0.3 * GENERATOR.normal(size=len(X)) > 0

LEVELS = {
    "open": {},
    "several label parties": {"label_parties": 2},
    "landmarks": {"feature_map": "landmarks"},
    "pair": {"feature_map": Fourier(functions="pair")},
    "stochastic": {"solver": Stochastic(n_steps=20)},
    "a cache of some rows": {"cache_size": 3000 * 64},
    "trees": {"masking": "trees"},
    "encoded": {"scale": "smooth"},
    "values": {"disclosure": "values", "tol": 0.2},
    "sealed": {"disclosure": "sealed", "loss": "square", "max_iter": 5},
}


def fitted(**options):
    return FDSKLClassifier(
        3, **({"n_components": 64, "scale": "standard", "random_state": 0} | options)
    ).fit(X, Y)


@pytest.mark.usefixtures("ray")
def test_a_fit_at_workers_is_the_fit_in_threads():
    here, there = fitted(), fitted(workers=2)
    assert there.bandwidth_ == here.bandwidth_
    assert there.n_iter_ == here.n_iter_
    np.testing.assert_allclose(
        there.shards_["party1"].coefficients, here.shards_["party1"].coefficients, rtol=1e-9
    )
    # Others see the same messages: as many bytes for the same purposes.
    kinds = [
        {(one.sender, one.receiver, one.disclosure.name): one.bytes for one in model.ledger_}
        for model in (here, there)
    ]
    assert kinds[0] == kinds[1]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_predicts_the_same(level):
    check_level(level)


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize("level", ["open", "several label parties", "values", "sealed"])
def test_levels_at_workers_of_ray(level):
    check_level(level)


def check_level(level):
    here, there = fitted(**LEVELS[level]), fitted(workers=2, **LEVELS[level])
    found = [model.decision_function(X[:1000]) for model in (here, there)]
    if level in ("values", "sealed"):
        # Noise and rounding by chance are drawn anew in each fit and prediction.
        assert np.corrcoef(*found)[0, 1] > 0.95
    else:
        np.testing.assert_allclose(*found, atol=1e-6)


@pytest.mark.usefixtures("in_process")
def test_sparse_columns_and_other_estimators():
    columns = sparse.random(5000, 30, 0.2, format="csr", random_state=0)
    for kind, target in ((AVFKAMClassifier, Y), (FDSKLRegressor, X[:, 0])):
        found = [
            kind(2, n_components=64, random_state=0, workers=workers).fit(columns, target)
            for workers in (None, Workers(count=3))
        ]
        values = [model.predict(columns[:500]).astype(float) for model in found]
        np.testing.assert_allclose(*values, atol=1e-6)


def test_wrong_workers_are_refused():
    for wrong in (0, -1, 2.5, "many", True):
        with pytest.raises(InputError, match="workers must be a number of workers"):
            fitted(workers=wrong)
    with pytest.raises(InputError, match="count"):
        Workers(count=0)


def test_without_ray_workers_are_refused(monkeypatch):
    monkeypatch.setattr("vertikal.compute.workers.cluster.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'need Ray.*pip install "vertikal\[ray\]"'):
        fitted(workers=2)


def test_resources_are_declared():
    assert Workers(gpus=1).options() == {"num_cpus": 0.0, "num_gpus": 1.0}
    there = Workers(count=4, address="auto", cpus=8, memory=1 << 30)
    assert there.options() == {"num_cpus": 8.0, "num_gpus": 0, "memory": 1 << 30}
    assert there.threads(2) == 8
    assert Workers(count=4, address="auto").options()["num_cpus"] == 1.0
    assert [Workers(count=2).threads(cores) for cores in (1, 2, 8)] == [1, 1, 4]


def test_a_named_gpu_is_declared_for_each_worker():
    assert WorkerGroup(Workers(count=2), "a", "cuda").workers.gpus == 1
    assert WorkerGroup(Workers(count=2, gpus=0.5), "a", "cuda").workers.gpus == 0.5
    assert WorkerGroup(Workers(count=2), "a", "auto").workers.gpus == 0
