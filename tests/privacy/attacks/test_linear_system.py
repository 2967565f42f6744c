from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from vertikal.errors import InputError
from vertikal.privacy.attacks.linear_system import (
    SPARE,
    all_against,
    recover_differences,
    recover_differences_exact,
)
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]

COLUMNS, D = 20, 256


def system(bits: int, spread: float, parties: int = 1) -> tuple[Array, Array, Array, Array]:
    """Phases, own phases, hidden directions, and differences to row 0, of norm ``spread``."""
    generator = np.random.default_rng(0)
    ring = Ring(bits)
    hidden = generator.normal(size=(101, COLUMNS))
    hidden *= spread / np.linalg.norm(hidden, axis=1, keepdims=True)
    hidden[0] = 0
    directions = generator.normal(size=(COLUMNS, D))
    own = generator.integers(0, 2**bits, (101, D)).astype(ring.dtype)
    phases = own.copy()
    for part in np.array_split(np.arange(COLUMNS), parties):
        b = generator.uniform(0, 2 * np.pi, D)
        phases += ring.encode_angles(hidden[:, part] @ directions[part] + b)
    return phases, own, directions, hidden[1:]


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("parties", [1, 3])
def test_unwrapping_finds_the_differences(bits: int, parties: int) -> None:
    phases, own, directions, truth = system(bits, 2.0, parties)
    found = recover_differences(
        phases, own, directions, Ring(bits), all_against(0, 101), hidden_parties=parties
    )
    assert found.converged.all()
    step = 1 / Ring(bits).steps
    assert np.abs(found.differences - truth).max() < 5 * step * np.sqrt(parties / 6 / D)
    # The residual is what rounding leaves, neither more nor less.
    assert np.mean(found.residuals) == pytest.approx(step * np.sqrt(parties / 6), rel=0.05)


def test_least_squares_on_principal_values_alone_does_not() -> None:
    """The equations of the test above do wrap: about one in nine of them."""
    phases, own, directions, truth = system(8, 2.0)
    turns = np.abs(truth @ directions) > np.pi
    assert 0.05 < turns.mean() < 0.2
    gaps = ((phases - own)[1:] - (phases - own)[0]).view(np.int8) / Ring(8).steps
    naive = np.linalg.lstsq(directions.T, gaps.T, rcond=None)[0].T
    assert np.abs(naive - truth).max() > 0.3


def test_restarts_and_soft_steps_reach_rows_that_are_far_apart() -> None:
    """At 2.7 radians one equation in four wraps. Plain re-wrapping solves 35 pairs of 100."""
    phases, own, directions, _ = system(8, 2.7)
    pairs = all_against(0, 101)
    once = recover_differences(phases, own, directions, Ring(8), pairs, restarts=0)
    often = recover_differences(phases, own, directions, Ring(8), pairs)
    assert 60 < once.converged.sum() < 85
    assert often.converged.sum() >= once.converged.sum() + 10


def test_what_is_not_recovered_is_not_claimed() -> None:
    """Rows so far apart that many equations wrap: the attack fails and says so, pair by pair."""
    phases, own, directions, truth = system(8, 3.0)
    found = recover_differences(phases, own, directions, Ring(8), all_against(0, 101))
    assert 0 < found.converged.sum() < 100
    right = np.abs(found.differences - truth).max(axis=1) < 0.01
    np.testing.assert_array_equal(found.converged, right)


def test_wrong_directions_leave_a_residual() -> None:
    phases, own, directions, _ = system(8, 1.0)
    found = recover_differences(phases, own, directions[:, ::-1], Ring(8), all_against(0, 101))
    assert not found.converged.any()
    assert found.residuals.min() > 0.3


def test_exact_needs_no_more_directions_than_columns() -> None:
    generator = np.random.default_rng(2)
    hidden, directions = generator.normal(size=(9, 6)), generator.normal(size=(6, 6))
    own, b = generator.normal(size=(9, 6)), generator.uniform(0, 6, 6)
    pairs = np.array([[1, 2], [7, 3]])
    found = recover_differences_exact(own + hidden @ directions + b, own, directions, pairs)
    np.testing.assert_allclose(found.differences, hidden[[1, 7]] - hidden[[2, 3]], atol=1e-12)
    assert found.converged.all()


def test_exact_sees_wrong_directions() -> None:
    generator = np.random.default_rng(3)
    hidden, directions = generator.normal(size=(9, 6)), generator.normal(size=(6, 30))
    wrong = directions[:, ::-1]
    found = recover_differences_exact(
        hidden @ directions, np.zeros((9, 30)), wrong, all_against(4, 9)
    )
    assert not found.converged.any()


def test_all_against_leaves_the_row_itself_out() -> None:
    assert all_against(1, 4).tolist() == [[0, 1], [2, 1], [3, 1]]


def test_rounding_to_a_unit() -> None:
    phases, own, directions, _ = system(8, 1.0)
    found = recover_differences(phases, own, directions, Ring(8), all_against(0, 101))
    units = found.rounded(0.5) / 0.5
    np.testing.assert_array_equal(units, np.rint(units))
    assert np.abs(found.rounded(0.5) - found.differences).max() <= 0.25


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"own_phases": np.zeros((4, 40), np.uint8)}, "own_phases must be uint8 of shape"),
        ({"own_phases": np.zeros((5, 40), np.uint16)}, "own_phases must be uint8 of shape"),
        ({"hidden_directions": np.ones((3, 39))}, "hidden_directions must be"),
        ({"hidden_directions": np.ones((41 - SPARE, 40))}, "at least 41 directions wide, got 40"),
        ({"pairs": np.array([0, 1])}, "pairs must be row numbers of shape"),
    ],
)
def test_input_that_does_not_fit_is_refused(change: dict[str, Array], message: str) -> None:
    good = {
        "phases": np.zeros((5, 40), np.uint8),
        "own_phases": np.zeros((5, 40), np.uint8),
        "hidden_directions": np.ones((3, 40)),
        "pairs": np.array([[0, 1]]),
    }
    with pytest.raises(InputError, match=message):
        recover_differences(ring=Ring(8), **(good | change))
