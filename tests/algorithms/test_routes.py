"""The ways of messages that owners are shown are those that messages take."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.algorithms.catalogue import algorithm_named
from vertikal.data.tables import Table
from vertikal.mesh.local import local_meshes
from vertikal.mesh.party_threads import run_in_threads
from vertikal.party.party import Labels, Party

NAMES = ("lender", "bank", "shop")
ROWS = 60
SMALL = {"n_components": 16, "bandwidth": "mean"}
SOLVER = {"alpha": 0.1, "max_iter": 5}
RARE = {"resumed", "passes", "phase shares", "predictions", "growth", "count of differing labels"}
"""Messages that a run need not have."""
JOBS = {
    "fdskl": ("fdskl", {**SMALL, "disclosure": "open"}, 1),
    "fdskl values": ("fdskl", {**SMALL, "disclosure": "values"}, 1),
    "fdskl sealed": ("fdskl", {**SMALL, **SOLVER, "disclosure": "sealed", "loss": "square"}, 1),
    "avfkam, two label parties": ("avfkam", {**SMALL, "disclosure": "open"}, 2),
    "kernel": ("kernel", {"n_components": 32, "disclosure": "open"}, 1),
    "admm": ("admm", {"max_iter": 5}, 1),
    "gram": ("gram", {}, 1),
    "gram landmarks": ("gram", {"machine": "komd", "landmarks": 20}, 1),
}


@pytest.mark.parametrize("name", JOBS)
def test_messages_go_the_ways_that_are_told(name):
    kind, written, count = JOBS[name]
    algorithm = algorithm_named(kind)
    settings = algorithm.read_settings(written, NAMES, NAMES[:count])
    draw = np.random.default_rng(0)
    tables = {one: draw.normal(size=(ROWS, 3)) for one in NAMES}
    targets = np.sign(sum(table[:, :1] for table in tables.values()))

    def take_part(mesh):
        party = Party(
            mesh,
            Table(mesh.me, ("a", "b", "c"), tables[mesh.me]),
            label_parties=NAMES[:count],
            labels=Labels(targets, np.ones(ROWS)) if mesh.me in NAMES[:count] else None,
            secret=bytes(32),
            job="routes",
            settings_digest="",
            version="1",
        )
        algorithm.train(party, settings)
        return party.ledger.entries()

    ended = run_in_threads(local_meshes(NAMES, 60.0), take_part)
    seen = {
        (entry.disclosure.name, entry.sender, entry.receiver)
        for entries in ended.results.values()
        for entry in entries
    }
    told = {
        (route.disclosure.name, *pair)
        for route in algorithm.routes(settings)
        for pair in route.pairs()
    }
    assert seen <= told
    unused = {one for one in told - seen if one[0] not in RARE}
    # What is told is no more than what a run of three parties has.
    assert {name for name, *_ in unused} <= {"inner products", "opening", "difference"}


def test_by_default_all_may_send_to_all():
    from tests.algorithms.toy import Toy, ToySettings

    settings = ToySettings(parties=("a", "b"), label_parties=("a",))
    assert [route.pairs() for route in Toy().routes(settings)] == [[("a", "b"), ("b", "a")]] * 2
