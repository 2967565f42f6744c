from __future__ import annotations

import numpy as np
import pytest

from vertikal.errors import InputError
from vertikal.privacy.attacks.binary_columns import binary_columns
from vertikal.privacy.attacks.opened_values import separate_values
from vertikal.privacy.attacks.score import matched_correlations

ROWS = 2000


def mixture(columns=10, dependent=False, noise=0.0, seed=0):
    """Yes-or-no columns, and whitened mixtures of them."""
    generator = np.random.default_rng(seed)
    hidden = (generator.uniform(size=(ROWS, columns)) < np.linspace(0.1, 0.5, columns)) * 1.0
    if dependent:
        # One of three: exactly one of the first three columns is 1, as in a coded category.
        hidden[:, :3] = np.eye(3)[generator.integers(0, 3, ROWS)]
    mixed = hidden @ generator.normal(size=(columns, columns + 2))
    mixed += noise * generator.normal(size=mixed.shape)
    return hidden, mixed


def whitened(mixed):
    centred = mixed - mixed.mean(axis=0)
    axes, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    return axes[:, sizes > 1e-6 * sizes[0]] * np.sqrt(len(mixed))


def test_it_finds_columns_that_are_mixed():
    hidden, mixed = mixture()
    found = binary_columns(whitened(mixed))
    assert (matched_correlations(found, hidden) > 0.999).sum() >= 8
    assert set(np.unique(found)) == {0.0, 1.0}


def test_dependence_does_not_stop_it():
    """Coded categories are not independent: where components mislead, the space does not."""
    hidden, mixed = mixture(dependent=True)
    separated = separate_values(mixed)
    found = binary_columns(separated.scores, separated.components)
    by_components = matched_correlations(separated.components, hidden) > 0.999
    by_space = matched_correlations(found, hidden) > 0.999
    assert by_space.sum() >= 9
    assert by_space.sum() > by_components.sum()


def test_a_space_without_such_columns_has_none():
    generator = np.random.default_rng(1)
    assert binary_columns(whitened(generator.normal(size=(ROWS, 8)))).shape == (ROWS, 0)


def test_each_is_found_once():
    hidden, mixed = mixture(3)
    found = binary_columns(whitened(mixed), np.concatenate((hidden, 1 - hidden), axis=1))
    # Also what is yes or no by combination (both, either), but nothing twice.
    assert found.shape[1] == len({tuple(c ^ c[0]) for c in found.astype(int).T})


def test_no_space_no_columns():
    assert binary_columns(np.empty((50, 0))).shape == (50, 0)
    with pytest.raises(InputError, match="scores must be two-dimensional"):
        binary_columns(np.empty(5))
