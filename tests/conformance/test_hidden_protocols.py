"""One suite for all protocols of hidden features: products, noise, counts and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.hidden_protocols import PROTOCOLS, drawn
from tests.secure.hidden.hidden_run import cosines, pairs_of
from vertikal.errors import PassesUsedUp, PeerStopped, RingError, SecrecyError

ROWS, WIDTH = 130, 40
every_protocol = pytest.mark.parametrize("hide", PROTOCOLS.values(), ids=PROTOCOLS)


def vectors(size, outputs=1, seed=1):
    return np.random.default_rng(seed).standard_normal((size, outputs))


@every_protocol
@pytest.mark.parametrize("pairs", [False, True], ids=["cosines", "pairs"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_products_are_those_of_the_features(hide, pairs, dtype):
    phases = drawn(ROWS, WIDTH, dtype=dtype)
    features = (pairs_of if pairs else cosines)(phases)
    v, r = vectors(features.shape[1], 3), vectors(ROWS, 2)
    found = hide(
        phases,
        lambda hidden: (hidden.product("forward", v), hidden.product("adjoint", r)),
        pairs=pairs,
        value_bits=14,
        gradient_bits=14,
    ).result
    for product, exact, vector in zip(found, (features @ v, features.T @ r), (v, r), strict=True):
        assert product.shape == exact.shape
        # Errors of a feature are 0.8 % and cancel; noise is 2^-14 of the sum of magnitudes.
        bound = 0.04 * np.linalg.norm(vector, axis=0) + 6e-4 * np.abs(vector).sum(axis=0)
        assert (np.abs(product - exact) < bound).all()
        assert np.abs(exact).max() > 5 * bound.max()


@every_protocol
def test_values_have_the_bits_that_were_agreed(hide):
    phases, v = drawn(400, 16), np.ones((16, 1))
    found = hide(phases, lambda hidden: hidden.product("forward", v), value_bits=4).result
    error = found - cosines(phases) @ v
    # Uniform noise of 2^-4 of full scale, which is the sum of magnitudes or up to twice that.
    assert 0.9 < error.std() * np.sqrt(3) < 2.2
    assert abs(error.mean()) < 0.2


@every_protocol
def test_a_vector_of_zeros(hide):
    phases = drawn(ROWS, WIDTH)
    found = hide(phases, lambda hidden: hidden.product("forward", np.zeros((WIDTH, 1)))).result
    assert np.abs(found).max() < 1e-3


@every_protocol
def test_vectors_must_be_finite(hide):
    session = hide(drawn(40, 8), lambda hidden: hidden.product("forward", np.full((8, 1), np.nan)))
    assert isinstance(session.outcome.errors["ada"], RingError)


def helper_error(session):
    assert isinstance(session.outcome.errors["ada"], PeerStopped)
    return session.outcome.errors["hal" if "hal" in session.parts else "bob"]


@every_protocol
def test_no_row_is_opened_more_often_than_agreed(hide):
    phases, v = drawn(40, 8), np.ones((8, 2))
    seen = []

    def program(hidden):
        for _ in range(3):
            seen.append(hidden.product("forward", v))

    error = helper_error(hide(phases, program, passes=5))
    assert isinstance(error, PassesUsedUp)
    assert "asked for forward pass 6 over a row; 5 were agreed" in str(error)
    assert len(seen) == 2


@every_protocol
def test_gradients_are_counted(hide):
    phases, r = drawn(40, 8), np.ones((40, 1))
    seen = []

    def program(hidden):
        for _ in range(4):
            seen.append(hidden.product("adjoint", r))

    error = helper_error(hide(phases, program, gradients=2))
    assert "asked for gradient 3 about a direction; 2 were agreed" in str(error)
    assert len(seen) == 2
    error = helper_error(hide(phases, program, gradient_bits=14, bits_per_row=1))
    assert "more than 1 bits of each feature" in str(error)


@every_protocol
def test_a_gradient_of_few_rows_is_refused(hide):
    session = hide(drawn(6, 8), lambda hidden: hidden.product("adjoint", np.ones((6, 1))), fewest=8)
    error = helper_error(session)
    assert isinstance(error, SecrecyError)
    assert "asked for a gradient over 6 rows" in str(error)
