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
    assert steps.step_size * np.linalg.eigvalsh(hessian)[-1] <= 2 + 1e-9
    u = before = np.zeros(width)
    ridge = steps.ridge * 2.0 ** (COEFFICIENT_BITS - MATRIX_BITS - steps.residual_bits)
    scale = 2.0 ** (MATRIX_BITS + steps.residual_bits - COEFFICIENT_BITS - steps.step_shift)
    for momentum in steps.momenta:
        f = C @ u
        assert np.abs(f).max() <= steps.most_value
        # No step leads beyond where the fit began.
        value = np.mean((f - y) ** 2) + penalty / 2 * width / 2 * (u @ u)
        assert value <= np.mean(y**2) * (1 + 1e-9)
        gradient = C.T @ (f - y) + ridge * u
        wide = np.abs(gradient).max() * steps.step * 2.0 ** (MATRIX_BITS + steps.residual_bits)
        assert wide < 2.0**ROOM
        beta = momentum * 2.0**-MOMENTUM_BITS
        change = beta * (u - before) - (1 + beta) * gradient * steps.step * scale
        assert np.abs(change).max() * 2.0 ** (COEFFICIENT_BITS + MOMENTUM_BITS) < 2.0**ROOM
        u, before = u + change, u
    assert math.log2(steps.most_value) + MATRIX_BITS + COEFFICIENT_BITS <= ROOM


def test_a_plan_by_hand():
    steps = sealed_steps(1000, 64, 0.0001, 3, 2.0, MATRIX_BITS)
    largest = 1 + math.sqrt(2 * 40 * math.log(2) / 64)
    assert 2 / (2 * largest + 0.0001) * (1 - 2**-4) <= steps.step_size
    assert steps.step_size <= 2 / (2 * largest + 0.0001)
    assert 16 <= steps.step < 32
    assert steps.momenta == (0, 2**MOMENTUM_BITS // 3, 2**MOMENTUM_BITS // 2)
    assert steps.residual_bits == VALUE_BITS


def test_seventy_steps_come_as_far_as_a_hundred_and_fifty_of_nesterov():
    """On a Hessian of eigenvalues that fall off, and a minimum that lies far out."""
    h = 1.5 * 2.0 ** -np.arange(0, 24, 0.1)
    least = h**-0.4
    lipschitz = 2.5

    def gap(w):
        return h @ (w - least) ** 2 / 2

    w = before = np.zeros_like(h)
    for k in range(70):
        beta = k / (k + 2)
        step = beta * (w - before) - (1 + beta) * 2 / lipschitz * h * (w - least)
        w, before = w + step, w
    nesterov = v = np.zeros_like(h)
    t = 1.0
    for _ in range(150):
        following = v - h * (v - least) / lipschitz
        after = (1 + math.sqrt(1 + 4 * t * t)) / 2
        nesterov, v = following, following + (t - 1) / after * (following - nesterov)
        t = after
    assert gap(w) <= gap(nesterov) < gap(np.zeros_like(h)) / 5


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=50),
    st.floats(-1, 1),
)
def test_no_momentum_lets_an_error_grow(momenta, x):
    """The proof's lemma: |p_k| ≤ 1 for any momenta from 0 to 1 after a first of 0."""
    p, before = 1.0, 1.0
    for beta in [0.0, *momenta]:
        p, before = (1 + beta) * x * p - beta * before, p
        assert abs(p) <= 1 + 1e-9


def test_few_directions_may_have_features_twice_as_long():
    assert sealed_steps(10, 2, 1.0, 1, 2.0, MATRIX_BITS).step_size <= 2 / (2 * 2 + 1)


@pytest.mark.parametrize(
    ("rows", "iterations", "penalty"), [(10**7, 10**5, 1e-7), (100, 10**5, 1e-7), (10**6, 9, 1e9)]
)
def test_what_does_not_fit_is_refused(rows, iterations, penalty):
    with pytest.raises(InputError, match=f"'sealed' cannot hold {rows} rows, {iterations} iter"):
        sealed_steps(rows, 1024, penalty, iterations, 2.0, MATRIX_BITS)


def test_steps_without_end_are_refused():
    with pytest.raises(InputError, match="max_iter must be at most 100000 with"):
        sealed_steps(100, 64, 1e-3, 10**9, 2.0, MATRIX_BITS)


def test_a_million_rows_fit():
    assert sealed_steps(10**6, 2048, 1e-7, 300, 2.0, MATRIX_BITS).residual_bits >= 12
