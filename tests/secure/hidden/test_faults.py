"""Roles that stop, meddle or ask for more than was agreed: named, and nothing is opened."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.secure.hidden.hidden_run import draw_phases, hide
from tests.secure.meddling import impatient, repeating, saying, silent, widening
from vertikal.errors import DeadlineExceeded, MeshError, PadReused, PeerStopped, SecrecyError
from vertikal.secure.hidden.hidden_features import ProductRequest

ROWS, WIDTH = 40, 8
PHASES = draw_phases(ROWS, WIDTH)
FORWARD = np.ones((WIDTH, 1))


def forward(hidden):
    return hidden.product("forward", FORWARD)


def answers(session):
    return [frame for frame in session.tape if frame.header.tag.endswith("/answer")]


def failed(session, name):
    """The error of ``name``, after a run that opened nothing and ended for everybody else."""
    assert "ada" not in session.outcome.results
    assert not answers(session)
    return session.outcome.errors[name]


def test_no_row_is_opened_more_often_than_agreed():
    def program(hidden):
        hidden.product("forward", FORWARD)
        hidden.product("forward", np.ones((WIDTH, 1)), np.array([3, 5]))
        hidden.product("adjoint", np.ones((ROWS, 1)))
        hidden.product("forward", np.ones((WIDTH, 2)), np.array([7]))
        hidden.product("forward", np.ones((WIDTH, 1)), np.array([7]))

    session = hide(PHASES, program, passes=3)
    assert isinstance(session.outcome.errors["hal"], SecrecyError)
    assert str(session.outcome.errors["hal"]) == (
        "hal: ada asked for forward pass 4 over a row; 3 were agreed (max_passes), and nothing "
        "was opened"
    )
    assert len(answers(session)) == 4
    assert isinstance(session.outcome.errors["ada"], PeerStopped)
    assert "ada asked for forward pass 4" in str(session.outcome.errors["ada"])


@pytest.mark.parametrize("kind", ["forward", "adjoint"])
def test_no_row_twice_in_one_product(kind):
    rows = np.array([*range(10), 3])
    vectors = np.ones((WIDTH if kind == "forward" else len(rows), 1))
    error = failed(hide(PHASES, lambda hidden: hidden.product(kind, vectors, rows)), "hal")
    assert isinstance(error, SecrecyError)
    assert "asked for a row twice in one product" in str(error)
    assert "nothing was opened" in str(error)


@pytest.mark.parametrize("rows", [np.array([4]), np.array([4, 9])])
def test_no_gradient_of_few_rows(rows):
    session = hide(
        PHASES, lambda hidden: hidden.product("adjoint", np.ones((len(rows), 1)), rows), fewest=3
    )
    error = failed(session, "hal")
    assert isinstance(error, SecrecyError)
    assert "ada asked for a gradient over" in str(error)
    assert "fewer than 3 would show single features, and nothing was opened" in str(error)


@pytest.mark.parametrize(
    "request_",
    [
        ProductRequest("sideways", 1, 0, WIDTH),
        ProductRequest("forward", 0, 0, WIDTH),
        ProductRequest("forward", 1, 0, WIDTH + 1),
        ProductRequest("forward", 1, 3, 3),
        ProductRequest("adjoint", 1, -1, 3),
        ProductRequest("adjoint", 1, 0, 3, -2),
    ],
    ids=str,
)
def test_a_product_that_does_not_exist(request_):
    said = saying("request", msgspec.structs.asdict(request_))
    session = hide(PHASES, forward, wires={"ada": said})
    assert not answers(session)
    for name in ("hal", "tim"):
        error = session.outcome.errors[name]
        assert isinstance(error, MeshError)
        assert "ada" in str(error)
    assert any("a product that does not exist" in str(e) for e in session.outcome.errors.values())


def test_a_request_of_another_form():
    session = hide(PHASES, forward, wires={"ada": saying("request", {"kind": 7})})
    assert any("ada asked for a product wrongly" in str(e) for e in session.outcome.errors.values())


def test_rows_that_do_not_exist():
    session = hide(PHASES, lambda hidden: hidden.product("forward", FORWARD, np.array([1, ROWS])))
    errors = session.outcome.errors
    assert any(f"ada asked for rows beyond the {ROWS} there are" in str(errors[n]) for n in errors)
    assert not answers(session)


@pytest.mark.parametrize("name", ["hal", "tim", "sue"])
def test_a_role_that_stops_while_rows_are_hidden(name):
    def stop(part):
        raise OSError("out of paper")

    error = failed(hide(PHASES, forward, meddle={name: stop}), "ada")
    assert isinstance(error, PeerStopped)
    assert f"{name} stopped" in str(error)
    assert "out of paper" in str(error)


@pytest.mark.parametrize("name", ["hal", "tim"])
def test_a_role_that_stops_while_serving(name):
    def stop(part):
        def serve():
            raise OSError("out of paper")

        part.serve = serve

    error = failed(hide(PHASES, forward, meddle={name: stop}), "ada")
    assert isinstance(error, PeerStopped)
    assert f"{name} stopped" in str(error)


def test_a_label_party_that_stops_ends_the_others():
    def program(hidden):
        raise OSError("out of paper")

    session = hide(PHASES, program)
    for name in ("hal", "tim"):
        assert "ada stopped" in str(session.outcome.errors[name])


def test_a_silent_dealer_is_named_within_the_deadline():
    session = hide(PHASES, forward, wires={"tim": silent("dealt"), "hal": impatient("dealt")})
    error = failed(session, "hal")
    assert isinstance(error, DeadlineExceeded)
    assert "hal: nothing from tim for 'hidden/ada/0/dealt/dealt' within 0.3 s" in str(error)


@pytest.mark.parametrize(("step", "name"), [("dealt", "tim"), ("answer", "hal")])
def test_a_wrong_shape_is_refused(step, name):
    session = hide(PHASES, forward, wires={name: widening(step)})
    assert "ada" not in session.outcome.results
    reader = {"tim": "hal", "hal": "ada"}[name]
    assert f"{reader}: {name} sent uint64" in str(session.outcome.errors[reader])


def test_a_correlation_for_rows_that_comes_again():
    with repeating("corrections"):
        error = failed(hide(PHASES, forward, height=8), "hal")
    assert isinstance(error, PadReused)
    assert "hal: the dealer tim sent the same correlation twice" in str(error)


def test_a_correlation_for_a_product_that_comes_again():
    with repeating("dealt"):
        session = hide(PHASES, lambda hidden: [forward(hidden) for _ in range(2)])
    assert isinstance(session.outcome.errors["hal"], PadReused)
    assert len(answers(session)) == 1
