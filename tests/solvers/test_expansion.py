"""The lazy decay against coefficients that are multiplied one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertikal.solvers.expansion import Expansion

steps = st.lists(
    st.tuples(st.floats(0.01, 1.0), st.integers(0, 5), st.integers(1, 3), st.floats(-1, 1)),
    max_size=40,
)


@settings(deadline=None)
@given(steps=steps, outputs=st.integers(1, 2))
def test_lazy_equals_plain(steps, outputs):
    lazy, plain = Expansion(8, outputs), np.zeros((8, outputs))
    for factor, start, count, value in steps:
        columns = slice(start, start + count)
        lazy.decay(factor)
        plain *= factor
        lazy.add(columns, np.full((count, outputs), value))
        plain[columns] += value
        np.testing.assert_allclose(lazy.coefficients(), plain, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(lazy.coefficients(slice(2, 5)), plain[2:5], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("factor", [0.5, -0.5, 0.999, 1e-3])
def test_the_factor_may_vanish_many_times_over(factor):
    """0.5 to the 5000 is no double any more; the newest coefficients must not notice."""
    lazy, plain = Expansion(3, 1), np.zeros((3, 1))
    for step in range(5000):
        lazy.decay(factor)
        plain *= factor
        columns = slice(step % 3, step % 3 + 1)
        lazy.add(columns, np.ones((1, 1)))
        plain[columns] += 1
    assert np.isfinite(lazy.coefficients()).all()
    np.testing.assert_allclose(lazy.coefficients(), plain, rtol=1e-9)


def test_a_factor_of_zero_forgets_everything():
    expansion = Expansion(2, 1)
    expansion.add(slice(None), np.ones((2, 1)))
    expansion.decay(0.0)
    expansion.add(slice(1, 2), np.full((1, 1), 3.0))
    assert expansion.coefficients().tolist() == [[0.0], [3.0]]


def test_coefficients_are_a_copy():
    expansion = Expansion(2, 1)
    expansion.coefficients()[:] = 7
    assert expansion.coefficients().tolist() == [[0.0], [0.0]]
