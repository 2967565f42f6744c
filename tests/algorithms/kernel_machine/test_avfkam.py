"""AVFKAM on every mesh: the same program, asynchronous and in turns."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.algorithms.kernel_machine.pacing import Balanced
from tests.conformance.meshes import connected, every_mesh, local
from tests.naive.pairwise import auc as plain_auc
from tests.naive.phases import cosines, summed_phases
from tests.options import grouped
from vertikal import Stochastic
from vertikal.algorithms.kernel_machine import avfkam
from vertikal.algorithms.kernel_machine.avfkam import PairUpdate
from vertikal.algorithms.kernel_machine.settings import AvfkamSettings
from vertikal.data.tables import Table
from vertikal.losses.pairwise import PAIR_LOSSES
from vertikal.party.party import Labels, Party, digest

GENERATOR = np.random.default_rng(0)
ROWS = 200
X = GENERATOR.normal(size=(ROWS, 8))
Y = X[:, 0] * X[:, 3] > 0.3
NAMES = ("bank", "shop", "mill", "port")
LABELS = Labels(np.where(Y, 1.0, -1.0)[:, None], np.ones(ROWS))


def settings_of(**changes):
    given = {
        "parties": NAMES,
        "label_parties": NAMES[:3],
        "solver": Stochastic(block_size=16, batch_size=16, n_steps=60),
        "n_components": 96,
        "bandwidth": 1.5,
        "validation": 0.4,
        "seed": 5,
    }
    return AvfkamSettings(**grouped(**(given | changes)))


def columns_of(name):
    place = NAMES.index(name)
    return X[:, 2 * place : 2 * place + 2]


def train(ends, settings, observer=None):
    shards, errors = {}, []

    def run(name):
        try:
            party = Party(
                ends[name],
                Table(name, ("u", "v"), columns_of(name)),
                label_parties=settings.label_parties,
                labels=LABELS if name in settings.label_parties else None,
                secret=name.encode().ljust(32, b"."),
                job="job",
                settings_digest=digest(settings),
                version="1",
                observer=observer,
            )
            shards[name] = avfkam.train(party, settings)
        except BaseException as error:
            errors.append(error)
            ends[name].fail(str(error))

    threads = [threading.Thread(target=run, args=(name,), daemon=True) for name in ends]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if errors:
        raise errors[0]
    return shards


def pooled(shards):
    """f of the training rows, from all shards in one place."""
    blocks = {name: columns_of(name) for name in NAMES}
    total = 0.0
    for owner in shards[NAMES[0]].settings.label_parties:
        features = cosines(summed_phases(shards, blocks, owner)) / np.sqrt(96)
        total = total + features @ shards[owner].coefficients
    return total[:, 0]


@every_mesh
def test_label_parties_learn_without_waiting_on_every_mesh(factory):
    with connected(factory, NAMES, deadline=60.0) as ends:
        shards = train(ends, settings_of(), Balanced(NAMES[:3], 60))
    assert plain_auc(pooled(shards), Y) > 0.8
    assert shards["port"].coefficients is None
    counts = [sum(shards[name].training.staleness.values()) for name in NAMES[:3]]
    assert 60 <= sum(counts) < 66
    leader = shards["bank"]
    assert leader.unit[0] > 0
    assert [m.auc for m in leader.training.moments if m.auc is not None]


@every_mesh
def test_in_turns_the_model_is_the_same_on_every_mesh(factory):
    settings = settings_of(solver__schedule="turns", solver__n_steps=12)
    with connected(factory, NAMES, deadline=60.0) as ends:
        shards = train(ends, settings)
    with connected(local, NAMES, deadline=60.0) as ends:
        wanted = train(ends, settings)
    for name in NAMES[:3]:
        np.testing.assert_array_equal(shards[name].coefficients, wanted[name].coefficients)


def test_a_batch_holds_positive_rows_first_and_none_of_weight_zero():
    weights = np.where(np.arange(ROWS) % 5 == 0, 0.0, 1.0 + np.arange(ROWS) % 3)
    labels = Labels(LABELS.targets, weights)
    rule = PairUpdate(settings_of(solver__batch_size=500), labels, PAIR_LOSSES["square"])
    rows = rule.draw(bytes(32))
    assert Y[rows[:500]].all()
    assert not Y[rows[500:]].any()
    assert (weights[rows] > 0).all()
    assert len(np.unique(rows)) > 100


@pytest.mark.parametrize("name", sorted(PAIR_LOSSES))
def test_the_slopes_of_a_batch_against_finite_differences(name):
    rule = PairUpdate(settings_of(solver__batch_size=8), LABELS, PAIR_LOSSES[name])
    rows = rule.draw(bytes(32))
    f, h = GENERATOR.normal(size=(16, 1)), 1e-6
    slopes = rule.slopes(f, rows)
    for i in range(16):
        step = np.zeros_like(f)
        step[i] = h
        slope = (rule.mean_loss(f + step, rows) - rule.mean_loss(f - step, rows)) / (2 * h)
        assert slopes[i, 0] == pytest.approx(slope, rel=1e-4, abs=1e-6)
