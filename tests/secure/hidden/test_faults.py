"""Roles that stop, meddle or ask for more than was agreed: named, and nothing is opened."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from tests.secure.hidden.hidden_run import draw_phases, hide
from tests.secure.sealed.test_faults import impatient
from vertikal.errors import DeadlineExceeded, MeshError, PadReused, PeerStopped, SecrecyError
from vertikal.secure.hidden.hidden_features import HiddenFeatures, ProductRequest
from vertikal.secure.hidden.private_product import PrivateProduct
from vertikal.secure.keys.seeds import SeedSequence

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
    session = hide(PHASES, lambda hidden: hidden._announce(request_, None))
    assert not answers(session)
    for name in ("hal", "tim"):
        error = session.outcome.errors[name]
        assert isinstance(error, MeshError)
        assert "ada" in str(error)
    assert any("a product that does not exist" in str(e) for e in session.outcome.errors.values())


def test_a_request_of_another_form():
    session = hide(
        PHASES,
        lambda hidden: [hidden._mesh.send(to, hidden._tag, {"kind": 7}) for to in ("hal", "tim")],
    )
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
    def silent(part):
        part._product.deal = lambda *args: None

    session = hide(PHASES, forward, meddle={"tim": silent, "hal": impatient("dealt")})
    error = failed(session, "hal")
    assert isinstance(error, DeadlineExceeded)
    assert "hal: nothing from tim for 'hidden/ada/0/dealt/dealt' within 0.3 s" in str(error)


@pytest.mark.parametrize(("step", "name"), [("dealt", "tim"), ("answer", "hal")])
def test_a_wrong_shape_is_refused(step, name):
    def widen(part):
        link = part._product._dealing if name == "tim" else part._product._to_label_party
        send = link.send

        def wrong(what, values):
            send(what, np.concatenate((values, values)) if what == step else values)

        link.send = wrong

    session = hide(PHASES, forward, meddle={name: widen})
    assert "ada" not in session.outcome.results
    reader = {"tim": "hal", "hal": "ada"}[name]
    assert f"{reader}: {name} sent uint64" in str(session.outcome.errors[reader])


def test_a_correlation_for_rows_that_comes_again():
    """A dealer whose seeds stand still sends the same corrections under fresh pads."""

    def stuck(part):
        cosines = part._cosines._cosines
        first = cosines._shares.take((8, WIDTH), np.uint64)
        half = cosines._halves.take((8, WIDTH), np.uint8)
        for sequence, values in (
            ("_shares", first),
            ("_halves", half),
            ("_helpers_halves", half),
        ):
            still = mock.Mock(spec=SeedSequence)
            still.take.side_effect = lambda *_, values=values: values.copy()
            setattr(cosines, sequence, still)

    zero = {name: np.zeros((ROWS, WIDTH), np.uint8) for name in PHASES}
    error = failed(hide(zero, forward, height=8, meddle={"tim": stuck}), "hal")
    assert isinstance(error, PadReused)
    assert "hal: the dealer tim sent the same correlation twice" in str(error)


def test_a_correlation_for_a_product_that_comes_again():
    def stuck(part):
        dealt = np.arange(ROWS, dtype=np.uint64)[:, None]
        part._product.deal = lambda *args: part._product._dealing.send("dealt", dealt.copy())

    session = hide(
        PHASES, lambda hidden: [forward(hidden) for _ in range(2)], meddle={"tim": stuck}
    )
    assert isinstance(session.outcome.errors["hal"], PadReused)
    assert len(answers(session)) == 1


def test_the_classes_used_here_are_the_real_ones():
    """The tests above replace attributes by name: they must exist."""
    assert callable(PrivateProduct.deal)
    assert callable(HiddenFeatures.serve)
