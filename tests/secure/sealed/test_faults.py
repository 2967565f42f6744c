"""Roles of a sealed run that stop, meddle or repeat themselves: named, and nothing is opened."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from tests.secure.hidden.hidden_run import ROLES, draw_phases
from tests.secure.meddling import impatient, repeating, silent, widening
from tests.secure.sealed.sealed_run import seal
from vertikal.errors import DeadlineExceeded, PadReused, PeerStopped
from vertikal.secure.hidden.dealing import Dealing

ROWS, WIDTH = 40, 8
PHASES = draw_phases(ROWS, WIDTH)
AGREED = {"forward": 3, "adjoint": 3, "factors": 1, "reveals": True}


def program(part):
    part.hold(np.ones((ROWS, 1), np.uint64) if part.is_label_party else None)
    v = np.zeros((WIDTH, 1), np.uint64)
    for _ in range(3):
        f = part.drop(part.forward(v), 4)
        v = part.drop(part.adjoint(part.scale(f)), 4)
    return part.reveal(f)


def run(meddle=None, wires=None):
    return seal(PHASES, program, height=8, meddle=meddle, wires=wires, **AGREED)


def failed(session, name):
    """The error of ``name``, after a run that opened nothing."""
    assert "ada" not in session.outcome.results
    assert not [f for f in session.tape if f.header.tag.endswith("/reveal")]
    return session.outcome.errors[name]


def out_of_paper(*args):
    raise OSError("out of paper")


@pytest.mark.parametrize("name", ["ada", "hal", "sue", "tim"])
def test_a_role_that_stops_while_rows_are_sealed(name):
    session = run({name: out_of_paper})
    for other in {"ada", "hal"} - {name}:
        error = failed(session, other)
        assert isinstance(error, PeerStopped)
        assert f"{name} stopped (OSError: out of paper)" in str(error)


@pytest.mark.parametrize("name", ["ada", "hal", "tim"])
@pytest.mark.parametrize("step", ["forward", "adjoint", "drop", "scale", "reveal"])
def test_a_role_that_stops_on_the_way(name, step):
    def stop(part):
        setattr(part, step, out_of_paper)

    session = run({name: stop})
    if (name, step) in (("tim", "reveal"), ("ada", "reveal")):
        # Whoever does not send there is not missed; the label party itself gets nothing.
        assert isinstance(session.outcome.errors[name], OSError)
        return
    for other in {"ada", "hal"} - {name}:
        error = failed(session, other)
        assert isinstance(error, PeerStopped)
        assert f"{name} stopped (OSError: out of paper)" in str(error)


@pytest.mark.parametrize("step", ["dealt forward", "dealt adjoint", "rounded", "scaled"])
def test_a_silent_dealer_is_named_within_the_deadline(step):
    error = failed(run(wires={"tim": silent(step), "hal": impatient(step)}), "hal")
    assert isinstance(error, DeadlineExceeded)
    assert f"hal: nothing from tim for 'hidden/ada/0/dealt/{step}' within 0.3 s" in str(error)


@pytest.mark.parametrize("step", ["corrections", "dealt forward", "rounded", "scaled"])
def test_a_wrong_shape_from_the_dealer_is_refused(step):
    error = failed(run(wires={"tim": widening(step)}), "hal")
    assert f"hal: tim sent uint64 ({'16' if step == 'corrections' else '80'}, " in str(error)


@pytest.mark.parametrize(("name", "other"), [("ada", "hal"), ("hal", "ada")])
@pytest.mark.parametrize("step", ["difference", "masked forward", "masked adjoint", "rounding"])
def test_a_wrong_shape_from_the_other_role_is_refused(name, other, step):
    error = failed(run(wires={name: widening(step)}), other)
    assert f"{other}: {name} sent uint64" in str(error)


@pytest.mark.parametrize("step", ["corrections", "dealt forward", "rounded", "scaled"])
def test_a_correlation_that_comes_again(step):
    """A dealer that sends what it sent before, under fresh pads."""
    with repeating(step):
        error = failed(run(), "hal")
    assert isinstance(error, PadReused)
    assert "hal: the dealer tim sent the same correlation twice; nothing was computed" in str(error)


def test_a_second_run_under_the_same_roles_and_session_is_refused():
    """Its pads would be those of the first."""

    original = Dealing.__init__
    kept = {}

    def remember(self, mesh, keys, *args, **options):
        original(self, mesh, keys, *args, **options)
        kept[mesh.me] = (mesh, keys)

    def twice(part):
        mesh, keys = kept["tim"]
        Dealing(mesh, keys, ROLES)

    with mock.patch.object(Dealing, "__init__", remember):
        session = run({"tim": twice})
    assert isinstance(session.outcome.errors["tim"], PadReused)
    failed(session, "hal")
