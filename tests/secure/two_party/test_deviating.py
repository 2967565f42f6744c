"""A label party that deviates: numbers of its choice, as many and as precise as are counted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.conformance.uniformity import check_uniform
from tests.secure.hidden.hidden_run import cosines, draw_phases
from tests.secure.meddling import changing
from tests.secure.two_party.test_views import frames
from tests.secure.two_party.two_party_run import NAMES, hide_between_two
from vertikal.errors import PassesUsedUp
from vertikal.secure.two_party.parameters import FEATURES, PRIME_BITS, PRODUCTS
from vertikal.secure.two_party.wire_words import wire_bytes

ROWS, WIDTH = 96, 64
PHASES = draw_phases(ROWS, WIDTH, 2, names=NAMES)


def test_a_gradient_with_all_weight_on_one_row_is_its_features():
    """As with a dealer; the rest of each number is the helper's noise, and they are counted."""
    read = []

    def program(hidden):
        for row in range(ROWS):
            read.append(hidden.product("adjoint", np.eye(ROWS)[:, [row]])[:, 0])

    session = hide_between_two(PHASES, program, gradients=10**6, gradient_bits=14, bits_per_row=2)
    assert isinstance(session.outcome.errors["bob"], PassesUsedUp)
    assert len(read) == ROWS * 2 // 14
    error = np.array(read) - cosines(PHASES)[: len(read)]
    # 14 bits of each coefficient are about 11 of a feature, beside errors of 0.8 %.
    assert 0.006 < error.std() < 0.01


@pytest.mark.parametrize("step", ["forward", "cosines"])
def test_whatever_is_sent_comes_back_uniform(step):
    """Zeros in place of ciphertexts: phases are then c1·s, and no word says more than its bits."""
    zeros = changing(step, np.zeros_like)
    session = hide_between_two(
        PHASES,
        lambda hidden: hidden.product("forward", np.ones((WIDTH, 4)) / WIDTH),
        value_bits=6,
        wires={"ada": zeros},
    )
    seen = frames(session)
    check_uniform(seen["bob", "features/masked"])
    check_uniform(seen["bob", "features/hidden"])


@pytest.mark.parametrize(("what", "parameters"), [("features", FEATURES), ("products", PRODUCTS)])
def test_a_public_key_that_is_none_does_not_show_c1(what, parameters):
    """With b = 0 nothing cancels, and c1 of every answer is as uniform as before."""
    shape = (len(parameters.primes), 1, parameters.degree)
    size = wire_bytes(math.prod(shape), PRIME_BITS)
    none = changing("key", lambda packed: np.zeros_like(packed) if packed.size == size else packed)
    session = hide_between_two(
        PHASES,
        lambda hidden: hidden.product("forward", np.ones((WIDTH, 1)) / WIDTH),
        wires={"ada": none},
    )
    seen = frames(session)
    check_uniform(seen["bob", "features/hidden"])
    check_uniform(seen["bob", "products/forward/answer/hidden"])


def test_the_same_question_twice_has_other_noise_and_other_numbers():
    one = np.ones((WIDTH, 1))
    session = hide_between_two(
        PHASES,
        lambda hidden: [hidden.product("forward", one) for _ in range(2)],
        value_bits=6,
    )
    first, second = session.result
    # Twice uniform noise of 2^-6 of full scale, which is 64 and a margin of 5 %; the deviation of
    # 96 rows is right to 6 %, so that five times as much leaves no run to chance.
    assert 0.75 < (first - second).std() / np.sqrt(2 / 3) < 1.4
    answers = frames(session)["bob", "products/forward/answer/hidden"]
    assert not np.array_equal(*answers)
