from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from vertikal.errors import InputError
from vertikal.privacy.attacks.score import matched_correlations
from vertikal.privacy.attacks.source_separation import Separated, centred_angles, separate
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]

ROWS, COLUMNS, D = 3000, 8, 128


def columns() -> Array:
    shares = np.linspace(0.3, 0.6, COLUMNS)
    return (np.random.default_rng(0).uniform(size=(ROWS, COLUMNS)) < shares).astype(float)


def projections(spread: float) -> Array:
    """ωᵀx (rows, D) of the columns, whose standard deviation is about ``spread`` radians."""
    truth = columns()
    directions = np.random.default_rng(1).normal(size=(COLUMNS, D))
    return np.asarray(truth @ directions * spread / np.sqrt(truth.var(axis=0).sum()))


def mixed(spread: float, bits: int = 8) -> tuple[Array, Array]:
    """Phases and the attacker's own part of them."""
    generator = np.random.default_rng(2)
    ring = Ring(bits)
    own = generator.integers(0, 2**bits, (ROWS, D)).astype(ring.dtype)
    b = generator.uniform(0, 2 * np.pi, D)
    return own + ring.encode_angles(projections(spread) + b), own


def check_found(found: Separated) -> None:
    assert found.converged
    assert found.components.shape == (ROWS, COLUMNS)
    assert matched_correlations(found.components, columns()).min() > 0.99


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_binary_columns_are_separated_and_counted(bits: int) -> None:
    check_found(separate(*mixed(0.4, bits), Ring(bits)))


@pytest.mark.parametrize("bits", [8, 16])
def test_wraps_are_undone(bits: int) -> None:
    """One radian, as the median bandwidth makes it: some directions wrap for a few rows."""
    centred = projections(1.0) - projections(1.0).mean(axis=0)
    assert (np.abs(centred) > np.pi).any(axis=0).mean() > 0.1
    check_found(separate(*mixed(1.0, bits), Ring(bits)))


def test_without_own_phases_there_is_no_structure() -> None:
    """The attacker's own phases must be taken off: here they were drawn uniformly."""
    phases, own = mixed(0.4)
    found = separate(phases, np.zeros_like(own), Ring(8))
    assert found.components.shape == (ROWS, 0)
    forced = separate(phases, np.zeros_like(own), Ring(8), rank=COLUMNS, max_iterations=20)
    assert forced.components.shape == (ROWS, COLUMNS)
    assert matched_correlations(forced.components, columns()).max() < 0.1


def test_the_spectrum_falls_to_quantisation_noise() -> None:
    spectrum = separate(*mixed(0.4), Ring(8)).spectrum
    assert spectrum.shape == (D,)
    assert (np.diff(spectrum) <= 0).all()
    assert spectrum[COLUMNS - 1] > 100
    assert spectrum[COLUMNS:].mean() == pytest.approx(1 / 12, rel=0.3)


def test_an_attacker_may_know_how_many_columns_there_are() -> None:
    assert separate(*mixed(0.4), Ring(8), most=3).components.shape == (ROWS, 3)
    check_found(separate(*mixed(0.4), Ring(8), most=100))


def test_unsettled_components_are_said_to_be() -> None:
    assert not separate(*mixed(0.4), Ring(8), max_iterations=1).converged


def test_the_same_seed_gives_the_same_components() -> None:
    first, second = (separate(*mixed(0.4), Ring(8), random_state=5) for _ in range(2))
    np.testing.assert_array_equal(first.components, second.components)


def test_angles_are_taken_about_the_circular_mean() -> None:
    """Phases on both sides of zero have their mean at zero, not at half a turn."""
    hidden = np.array([[250, 100], [0, 110], [6, 120]], np.uint8)
    np.testing.assert_array_equal(centred_angles(hidden, Ring(8)), [[-6, -10], [0, 0], [6, 10]])


@pytest.mark.parametrize("rank", [0, D + 1])
def test_an_impossible_rank_is_refused(rank: int) -> None:
    with pytest.raises(InputError, match="rank must be from 1 to 128, or None"):
        separate(*mixed(0.4), Ring(8), rank=rank)


def test_own_phases_of_another_shape_are_refused() -> None:
    phases, own = mixed(0.4)
    with pytest.raises(InputError, match="own_phases must be of shape"):
        separate(phases, own[1:], Ring(8))
