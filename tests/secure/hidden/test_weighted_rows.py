"""A label party that deviates: the bits that it can get of rows of its choice, and no more."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.uniformity import check_uniform
from tests.secure.hidden.hidden_run import cosines, draw_phases, hide
from vertikal.errors import PassesUsedUp
from vertikal.privacy.attacks.weighted_rows import read_rows, residuals_on, weights_of
from vertikal.secure.hidden.openings import GRADIENT_BITS_PER_ROW

ROWS, WIDTH = 168, 32
PHASES = draw_phases(ROWS, WIDTH)
TRUTH = cosines(PHASES)


def attack(together, **limits):
    """Ask for gradients about ``together`` rows each until refused: cosines read, by row."""
    found = {}

    def program(hidden):
        weights = weights_of(together)
        for first in range(0, ROWS - together + 1, together):
            chosen = range(first, first + together)
            gradient = hidden.product("adjoint", residuals_on(ROWS, chosen, weights))
            read = read_rows(gradient[:, 0], weights)
            found.update(zip(chosen, read, strict=True))

    session = hide(PHASES, program, **limits)
    return found, session


def right(found):
    """The share of the phases read that are right, up to their sign."""
    rows = list(found)
    return np.mean(np.abs(np.array([found[row] for row in rows]) - TRUTH[rows]) < 1e-6)


def test_28_bits_and_a_gradient_for_four_rows_give_half_of_all_phases():
    """Without limits in bits: two rows in each gradient, and nearly every phase is right."""
    found, session = attack(2, gradient_bits=28, bits_per_row=7)
    assert isinstance(session.outcome.errors["hal"], PassesUsedUp)
    assert len(found) == ROWS / 2
    assert right(found) > 0.9


def test_12_bits_do_not_hold_two_rows():
    found, session = attack(2, gradient_bits=12, bits_per_row=GRADIENT_BITS_PER_ROW)
    assert isinstance(session.outcome.errors["hal"], PassesUsedUp)
    assert len(found) == 2 * ROWS * GRADIENT_BITS_PER_ROW // 12
    # The row of great weight is read roughly, the other hardly at all.
    assert right({row: read for row, read in found.items() if row % 2 == 0}) < 0.2
    assert right(found) < 0.5


def test_one_row_for_each_gradient_can_be_read_and_these_are_a_sixth_at_most():
    found, session = attack(1, gradient_bits=12, bits_per_row=GRADIENT_BITS_PER_ROW)
    assert isinstance(session.outcome.errors["hal"], PassesUsedUp)
    assert len(found) == ROWS * GRADIENT_BITS_PER_ROW // 12 == ROWS / 6
    assert right(found) > 0.9


@pytest.mark.parametrize("gradients", [1, 7])
def test_no_more_rows_than_the_solver_takes_gradients(gradients):
    found, session = attack(1, gradients=gradients, gradient_bits=12, bits_per_row=2)
    assert str(session.outcome.errors["hal"]) == (
        f"hal: ada asked for gradient {gradients + 1} about a direction; {gradients} were agreed, "
        "as many as its solver may take, and nothing was opened"
    )
    assert len(found) == gradients


def test_the_helper_cannot_tell_where_the_weight_is():
    """Its view and its answers are uniform, with all weight on one row as with any residuals."""

    def program(hidden):
        return [
            hidden.product("adjoint", residuals_on(ROWS, [row], weights_of(1))) for row in range(60)
        ]

    session = hide(PHASES, program, gradient_bits=12)
    assert len(session.result) == 60
    for reader, step in (("hal", "ada: masked"), ("hal", "tim: dealt"), ("ada", "hal: answer")):
        check_uniform(session.seen[reader][step])
