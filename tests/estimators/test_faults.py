"""A party that stops or hangs: the caller learns who, in time, and nothing keeps running."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from tests.options import grouped
from vertikal import Stochastic, Values
from vertikal.algorithms.kernel_machine import fdskl
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.data.tables import Table
from vertikal.errors import InputError, MeshError, SecrecyError
from vertikal.estimators.simulation import Federation, simulate
from vertikal.party.party import Labels, digest

ROWS = 60
X = np.random.default_rng(0).normal(size=(ROWS, 6))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)[:, None]
COLUMNS = {"bank": [0, 1], "shop": [2, 3], "phone": [4, 5]}


class Trouble(Table):
    """A table that answers ``calls`` times and then calls ``then``."""

    def __init__(self, party, columns, values, calls, then):
        super().__init__(party, columns, values)
        self._calls, self._then = calls, then

    def block(self, rows):
        self._calls -= 1
        if self._calls < 0:
            self._then()
        return super().block(rows)


def federate(troubled, then, *, calls=2, timeout=20.0, label_parties=("bank",), **settings):
    """Run the training program where one party's table makes trouble in the middle."""
    agreed = FdsklSettings(
        parties=tuple(COLUMNS), label_parties=label_parties, n_components=24, **grouped(**settings)
    )
    tables = {}
    for name, columns in COLUMNS.items():
        titles = tuple(f"column {c}" for c in columns)
        tables[name] = (
            Trouble(name, titles, X[:, columns], calls, then)
            if name == troubled
            else Table(name, titles, X[:, columns])
        )
    federation = Federation(
        tables,
        label_parties,
        Labels(Y, np.ones(ROWS)),
        {name: name.encode().ljust(32, b".") for name in tables},
        digest(agreed),
        "pads",
        timeout,
    )
    return simulate(federation, lambda party: fdskl.train(party, agreed))


def everything_said(error):
    return " ".join([str(error), *getattr(error, "__notes__", [])])


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 5
    while set(threading.enumerate()) - before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not set(threading.enumerate()) - before


def test_without_trouble_it_runs():
    outcome = federate("shop", None, calls=10**6)
    assert set(outcome.results) == set(COLUMNS)


@pytest.mark.parametrize("troubled", ["bank", "shop", "phone"])
@pytest.mark.parametrize("calls", [0, 1, 2])
def test_a_party_that_fails_is_named_at_once(troubled, calls):
    def broken():
        raise OSError("the disk is gone")

    began = time.monotonic()
    with pytest.raises(Exception, match="the disk is gone") as caught:
        federate(troubled, broken, calls=calls)
    assert time.monotonic() - began < 5
    assert troubled in everything_said(caught.value)


@pytest.mark.parametrize("solver", ["exact", "dsg"])
def test_a_party_that_fails_while_label_parties_learn(solver):
    def broken():
        raise OSError("the disk is gone")

    with pytest.raises(Exception, match="the disk is gone") as caught:
        federate(
            "phone",
            broken,
            calls=6,
            cache_size=24,
            solver=solver,
            solver__block_size=4,
            solver__batch_size=4,
        )
    assert "phone" in everything_said(caught.value)


def test_an_input_error_stays_one_and_is_not_hidden_by_those_who_waited():
    def broken():
        raise InputError("columns: column 2 of party 'shop' must hold numbers, got 'x'")

    with pytest.raises(InputError, match=r"^columns: column 2 of party 'shop' must hold numbers"):
        federate("shop", broken)


@pytest.mark.parametrize(
    ("troubled", "calls"), [("bank", 0), ("shop", 0), ("shop", 2), ("phone", 2)]
)
def test_a_party_that_hangs_is_named_within_the_deadline(troubled, calls):
    released = threading.Event()
    began = time.monotonic()
    try:
        with pytest.raises(MeshError, match=troubled) as caught:
            federate(troubled, lambda: released.wait(4), calls=calls, timeout=0.5)
        waited = time.monotonic() - began
    finally:
        released.set()
    assert waited < 3
    assert "\n" not in str(caught.value)
    assert f"{troubled} has sent nothing" in str(caught.value)


def test_a_party_that_is_slow_but_within_the_deadline_is_waited_for():
    outcome = federate("shop", lambda: time.sleep(0.2), timeout=60)
    assert outcome.results["bank"].coefficients is not None
    waiting = outcome.report.stages["phases"]
    assert waiting["bank"].seconds > 0.1


def test_two_that_fail_together_give_one_error():
    def broken():
        raise RuntimeError("both")

    agreed = FdsklSettings(parties=tuple(COLUMNS), label_parties=("bank",), n_components=8)
    tables = {
        name: Trouble(name, ("a", "b"), X[:, columns], 0, broken)
        for name, columns in COLUMNS.items()
    }
    secrets = {name: bytes([i]) * 32 for i, name in enumerate(tables)}
    federation = Federation(
        tables, ("bank",), Labels(Y, np.ones(ROWS)), secrets, digest(agreed), "pads", 5.0
    )
    with pytest.raises(RuntimeError, match="both"):
        simulate(federation, lambda party: fdskl.train(party, agreed))


@pytest.mark.parametrize("troubled", ["bank", "shop", "phone", "post"])
@pytest.mark.parametrize("label_parties", [("bank",), ("bank", "phone")])
def test_a_party_that_fails_where_phases_are_hidden(troubled, label_parties, monkeypatch):
    """Helper (shop) and dealer (post) serve each label party from a thread of its own."""
    monkeypatch.setitem(COLUMNS, "post", [1, 4])

    def broken():
        raise OSError("the disk is gone")

    with pytest.raises(Exception, match="the disk is gone") as caught:
        federate(
            troubled,
            broken,
            calls=1,
            label_parties=label_parties,
            disclosure=Values(max_passes=9),
        )
    assert troubled in everything_said(caught.value)


def test_a_helper_that_refuses_one_label_party_ends_both(monkeypatch):
    monkeypatch.setitem(COLUMNS, "post", [1, 4])
    disclosure, solver = Values(max_passes=2), Stochastic(batch_size=60, block_size=2)
    with pytest.raises(SecrecyError, match=r"shop: (bank|phone) asked for forward pass 3"):
        federate(
            "shop",
            None,
            calls=10**6,
            label_parties=("bank", "phone"),
            disclosure=disclosure,
            solver=solver,
        )
