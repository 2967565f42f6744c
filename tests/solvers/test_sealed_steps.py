"""The public steps of a sealed fit: safe steps, numbers that fit, for any data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertikal.errors import InputError
from vertikal.solvers.sealed_steps import (
    COEFFICIENT_BITS,
    MOMENTUM_BITS,
    ROOM,
    VALUE_BITS,
    sealed_steps,
)

MATRIX_BITS = 22


def features(rows, width, spread, seed):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, 3)) * spread
    angles = X @ generator.normal(size=(3, width)) + generator.uniform(0, 2 * np.pi, width)
    return np.cos(angles)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(2, 60),
    st.integers(4, 64),
    st.sampled_from([0.0, 0.1, 3.0]),
    st.sampled_from([1e-7, 1e-2, 1.0, 100.0]),
    st.integers(1, 80),
    st.integers(0, 1000),
)
def test_steps_are_safe_and_every_number_fits(rows, width, spread, penalty, iterations, seed):
    """Float arithmetic beside the whole numbers: the bounds hold for w, f and the gradient."""
    C = features(rows, width, spread, seed)
    y = np.where(np.random.default_rng(seed).uniform(size=rows) < 0.3, 1.0, -1.0)
    y -= y.mean()
    steps = sealed_steps(rows, width, penalty, iterations, 2.0, MATRIX_BITS)
    hessian = 4 / (rows * width) * C.T @ C + penalty * np.eye(width)
    assert steps.step_size * np.linalg.eigvalsh(hessian)[-1] <= 1 + 1e-9
    u = v = np.zeros(width)
    ridge = steps.ridge * 2.0 ** (COEFFICIENT_BITS - MATRIX_BITS - steps.residual_bits)
    scale = 2.0 ** (MATRIX_BITS + steps.residual_bits - COEFFICIENT_BITS - steps.step_shift)
    for momentum in steps.momenta:
        f = C @ v
        assert np.abs(f).max() <= steps.most_value
        gradient = C.T @ (f - y) + ridge * v
        wide = np.abs(gradient).max() * steps.step * 2.0 ** (MATRIX_BITS + steps.residual_bits)
        assert wide < 2.0**ROOM
        following = v - gradient * steps.step * scale
        v = following + momentum * 2.0**-MOMENTUM_BITS * (following - u)
        u = following
    assert math.log2(steps.most_value) + MATRIX_BITS + COEFFICIENT_BITS <= ROOM


def test_a_plan_by_hand():
    steps = sealed_steps(1000, 64, 0.0001, 3, 2.0, MATRIX_BITS)
    largest = 1 + math.sqrt(2 * 40 * math.log(2) / 64)
    assert 1 / (2 * largest + 0.0001) * (1 - 2**-3) <= steps.step_size
    assert steps.step_size <= 1 / (2 * largest + 0.0001)
    assert 8 <= steps.step < 16
    times = [1.0, (1 + math.sqrt(5)) / 2]
    times.append((1 + math.sqrt(1 + 4 * times[1] ** 2)) / 2)
    assert [m * 2.0**-MOMENTUM_BITS for m in steps.momenta[:2]] == pytest.approx(
        [0.0, (times[1] - 1) / times[2]], abs=2e-5
    )
    assert steps.residual_bits == VALUE_BITS


def test_few_directions_may_have_features_twice_as_long():
    assert sealed_steps(10, 2, 1.0, 1, 2.0, MATRIX_BITS).step_size <= 1 / (2 * 2 + 1)


@pytest.mark.parametrize(
    ("rows", "iterations", "penalty"), [(10**7, 10**5, 1e-6), (100, 10**5, 1e-6), (10**6, 9, 1e9)]
)
def test_what_does_not_fit_is_refused(rows, iterations, penalty):
    with pytest.raises(InputError, match=f"'sealed' cannot hold {rows} rows, {iterations} iter"):
        sealed_steps(rows, 1024, penalty, iterations, 2.0, MATRIX_BITS)


def test_steps_without_end_are_refused():
    with pytest.raises(InputError, match="max_iter must be at most 100000 with"):
        sealed_steps(100, 64, 1e-3, 10**9, 2.0, MATRIX_BITS)


def test_a_million_rows_fit():
    assert sealed_steps(10**6, 2048, 1e-7, 300, 2.0, MATRIX_BITS).residual_bits >= 12
