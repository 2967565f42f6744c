"""Fits whose parties have workers, against the same fits in threads."""

from __future__ import annotations

import socket
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from tests.conformance.uniformity import check_uniform
from vertikal import (
    AVFKAMClassifier,
    FDSKLClassifier,
    FDSKLRegressor,
    Fourier,
    Stochastic,
    Workers,
)
from vertikal.algorithms.kernel_machine import phases
from vertikal.algorithms.kernel_machine.directions import draw_directions
from vertikal.compute.workers.worker_group import WorkerGroup
from vertikal.errors import InputError
from vertikal.estimators import base
from vertikal.estimators.simulation import simulate
from vertikal.mesh import RecordingMesh, Tape

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


def fitted(parties=3, **options):
    shared = {"n_components": 64, "scale": "standard", "random_state": 0}
    return FDSKLClassifier(parties, **(shared | options)).fit(X, Y)


@pytest.mark.parametrize("where", ["in_process", pytest.param("ray", marks=pytest.mark.slow)])
def test_a_fit_at_workers_is_the_fit_in_threads(request, where):
    request.getfixturevalue(where)
    here, there = fitted(2), fitted(2, workers=2)
    assert there.bandwidth_ == here.bandwidth_
    assert there.n_iter_ == here.n_iter_
    np.testing.assert_allclose(
        there.shards_["party1"].coefficients, here.shards_["party1"].coefficients, rtol=1e-9
    )
    # Others see the same messages: as many, and of as many bytes.
    sent = [
        {
            (one.sender, one.receiver, one.disclosure.name): (one.frames, one.bytes)
            for one in model.ledger_.entries()
        }
        for model in (here, there)
    ]
    assert sent[0] == sent[1]


def test_frames_are_masked_and_sent_once_though_a_worker_is_lost(monkeypatch, in_process):
    """Every block of a party's phases leaves once, under pads of its own."""
    tape, notes = Tape(), []

    def recording(federation, program):
        return simulate(replace(federation, wrap=lambda mesh: RecordingMesh(mesh, tape)), program)

    class Killing:
        def begin(self, party, stage, total):
            pass

        def advance(self, party, stage, amount, note):
            notes.extend([note] if "was lost" in note else [])
            if (party, stage, len(killed)) == ("party2", "phases", 0) and amount:
                killed.extend(actor for actor in in_process.actors if actor.made is not None)
                for actor in killed:
                    in_process.kill(actor)

        def end(self, party, stage, seconds):
            pass

    killed = []
    monkeypatch.setattr(base, "simulate", recording)
    monkeypatch.setattr(phases, "BLOCK_BYTES", 64 * 300)
    model = fitted(2, workers=2, verbose=Killing())
    assert len(killed) == 4
    assert {note.split(" was lost")[0] for note in notes} >= {
        f"worker {number} of 2 of party2 on {socket.gethostname()}" for number in (1, 2)
    }
    frames = tape.arrays("sum/phases", "party2", "party1")
    assert [len(frame) for frame in frames] == [300] * 16 + [200]
    check_uniform(frames)
    block = phases.direction_block(
        model.shards_["party2"], draw_directions(model.shards_["party2"], "party1")
    )
    columns = X[:, model.columns_["party2"]]
    own = block.feature_map.local(np.ascontiguousarray(columns))
    pads = [frame - own[300 * i : 300 * (i + 1)] for i, frame in enumerate(frames)]
    check_uniform(pads)
    alone = fitted(2)
    np.testing.assert_allclose(
        model.decision_function(X[:500]), alone.decision_function(X[:500]), atol=1e-6
    )


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


LINKED = ["open", "several label parties", "landmarks", "pair", "a cache of some rows", "trees"]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("level", LINKED)
def test_links_between_workers_change_no_bit_of_a_model(level):
    check_links(level)


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize("level", LINKED[:2])
def test_links_between_workers_of_ray(level):
    check_links(level)


def check_links(level):
    relayed, direct, bare = (
        fitted(workers=Workers(count=2, **options), **LEVELS[level])
        for options in ({}, {"direct": True}, {"direct": True, "retries": 0})
    )
    for model in (direct, bare):
        np.testing.assert_array_equal(
            model.decision_function(X[:1000]), relayed.decision_function(X[:1000])
        )
        kinds = {one.disclosure.name for one in model.ledger_.entries()}
        assert ("worker links" in kinds) == (level != "trees")


@pytest.mark.parametrize("stage", ["phases", "solve"])
def test_with_links_workers_are_lost_and_no_bit_of_a_model_changes(monkeypatch, in_process, stage):
    class Killing:
        def __init__(self):
            self.notes, self.killed = [], False

        def begin(self, party, stage, total):
            pass

        def advance(self, party, at, amount, note):
            self.notes.append(note)
            if (party, at) == ("party1", stage) and amount and not self.killed:
                self.killed = True
                for actor in in_process.actors:
                    actor.end()

        def end(self, party, stage, seconds):
            pass

    monkeypatch.setattr(phases, "BLOCK_BYTES", 64 * 300)
    before = fitted(workers=Workers(count=2, direct=True))
    watch = Killing()
    after = fitted(workers=Workers(count=2, direct=True), verbose=watch)
    assert any("was lost" in note for note in watch.notes)
    made_anew = any("links between workers are made anew" in note for note in watch.notes)
    assert made_anew == (stage == "phases")
    np.testing.assert_array_equal(
        after.shards_["party1"].coefficients, before.shards_["party1"].coefficients
    )


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
    with pytest.raises(InputError, match="first_port must be at most 65534 with 2 workers"):
        Workers(count=2, first_port=65535)


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
