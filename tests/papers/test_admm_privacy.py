"""ADMM sharing's privacy claims: Lemma 1 and Theorem 3 do not hold as published, and what does.

Lemma 1's bound shrinks with the number of columns; a data set meets all its assumptions and exceeds
it. The noise of (16) lies in the span of the columns, so a single release tells two neighbouring
data sets apart with certainty. The row mechanism's bound, 2b, is proved in
`vertikal.privacy.sensitivity`; here random and adversarial pairs try to exceed it.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from vertikal.algorithms.admm.design import normalised
from vertikal.algorithms.admm.noise import Noise, Release, plan_noise
from vertikal.algorithms.admm.settings import AdmmSettings, Privacy
from vertikal.party.party import Party
from vertikal.privacy.accountant import corollary1, corollary1_round, theorem3_deviation
from vertikal.privacy.sensitivity import lemma1_sensitivity, row_sensitivity
from vertikal.ring.integers import Ring
from vertikal.secure.lattice_gaussian import fraction_bits_for
from vertikal.solvers.bounded_least_squares import ball_solver
from vertikal.solvers.design import Design
from vertikal.solvers.regularisers import Regulariser


class Alone(Party):
    """A party that only draws noise and encodes."""

    def __init__(self) -> None:
        pass


def unit_rows(values):
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def test_lemma_1_is_exceeded():
    rows, columns, bound, rho, penalty = 400, 50, 1.0, 1.0, 1e-9
    generator = np.random.default_rng(0)
    # One column of length one, the others filling the rows up to length one.
    signs = np.where(generator.uniform(size=rows) < 0.5, -1.0, 1.0)
    column = signs / math.sqrt(rows)
    others = unit_rows(generator.normal(size=(rows, columns - 1))) * math.sqrt(1 - 1 / rows)
    D = np.hstack((column[:, None], others))
    # The neighbour: a quarter of that column's mass changes its sign, so rows keep their length.
    changed = column.copy()
    changed[: rows // 4] *= -1
    E = np.hstack((changed[:, None], others))
    assert np.allclose(np.linalg.norm(D, axis=1), 1)
    assert np.allclose(np.linalg.norm(E, axis=1), 1)
    assert np.linalg.norm(D - E, 2) == pytest.approx(1.0)
    assert np.linalg.matrix_rank(D) == columns
    # y = 0, the other party's part 0, z = b₁·column, all within the bound; x by (6) is b₁·e₁.
    z = bound * column[:, None]
    solver = ball_solver(Design(D), Regulariser(penalty, 0.0), rho, bound)
    x = solver.solve(z, np.zeros((columns, 1)))
    moved = np.linalg.norm(D @ x - E @ x)  # Definition 2: both with the x of D
    assert moved == pytest.approx(bound, rel=1e-6)
    assert moved > 5 * lemma1_sensitivity(columns, rho, penalty, 2, bound)


def test_lemma_1_as_printed():
    """3/(d_m ρ)·[λc₁ + (1 + Mρ)b₁] by hand: 3/(6·0.5)·[2·3 + (1 + 4·0.5)·7] = 27."""
    assert lemma1_sensitivity(6, 0.5, 2.0, 4, 7.0, smoothness=3.0) == pytest.approx(27.0)
    # Each of the numbers by itself.
    assert lemma1_sensitivity(12, 0.5, 2.0, 4, 7.0, smoothness=3.0) == pytest.approx(13.5)
    assert lemma1_sensitivity(6, 1.0, 2.0, 4, 7.0, smoothness=3.0) == pytest.approx(20.5)
    assert lemma1_sensitivity(6, 0.5, 0.0, 4, 7.0) == pytest.approx(21.0)
    assert lemma1_sensitivity(6, 0.5, 0.0, 4, 1.0) == pytest.approx(3.0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_assumption_2_rows_have_length_one(form):
    values = np.random.default_rng(0).normal(size=(50, 4)) * np.logspace(-3, 3, 50)[:, None]
    found = normalised(form(values))
    dense = found.toarray() if sparse.issparse(found) else found
    lengths = np.linalg.norm(dense, axis=1)
    np.testing.assert_allclose(lengths, 1.0, atol=1e-9)
    assert lengths.max() <= 1.0
    np.testing.assert_allclose(dense, unit_rows(values), atol=1e-9)


def test_theorem_3s_noise_leaves_the_span_of_the_columns_readable():
    generator = np.random.default_rng(1)
    D = unit_rows(generator.normal(size=(40, 5)))
    E = D.copy()
    E[3] = unit_rows(generator.normal(size=(1, 5)))
    privacy = Privacy(epsilon=0.1, delta=1e-6, mechanism="paper")
    noise = Noise(privacy, 1, 1.0, theorem3_deviation(0.1, 1e-6, 1.0), 36)
    contribution = D @ generator.normal(size=(5, 1))
    released = Release(Alone(), noise, Design(D), 36)(contribution, 2)[1]
    assert np.abs(released - contribution).max() > 5  # much noise …
    outside = [
        np.linalg.norm(released - M @ np.linalg.lstsq(M, released, rcond=None)[0]) for M in (D, E)
    ]
    assert outside[0] < 1e-6  # … and D is known from one release
    assert outside[1] > 1e-2


def test_eq_16s_noise_has_the_published_covariance():
    generator = np.random.default_rng(2)
    D = unit_rows(generator.normal(size=(12, 3)))
    noise = Noise(Privacy(epsilon=1.0, delta=1e-3, mechanism="paper"), 1, 1.0, 0.7, 36)
    sample = Release(Alone(), noise, Design(D), 36)(np.zeros((12, 20_000)), 2)[1]
    expected = 0.49 * D @ np.linalg.inv(D.T @ D) @ D.T
    np.testing.assert_allclose(sample @ sample.T / 20_000, expected, atol=0.02)


def solved(D, targets, penalty, curvature, bound):
    solver = ball_solver(Design(D), Regulariser(penalty, 0.0), curvature, bound)
    return D @ solver.solve(targets, np.zeros((D.shape[1], 1)))


@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 12),
    columns=st.integers(1, 6),
    penalty=st.floats(1e-6, 10),
    curvature=st.floats(1e-3, 100),
    tilt=st.sampled_from(["random", "flip", "zero"]),
)
def test_replacing_a_row_moves_the_release_by_at_most_2b(
    seed, rows, columns, penalty, curvature, tilt
):
    generator = np.random.default_rng(seed)
    bound = 1.5
    D = unit_rows(generator.normal(size=(rows, columns)))
    targets = np.clip(3 * generator.normal(size=(rows, 1)), -bound, bound)
    E, i = D.copy(), int(generator.integers(rows))
    E[i] = {"random": unit_rows(generator.normal(size=(1, columns)))[0], "flip": -D[i], "zero": 0}[
        tilt
    ]
    moved = np.linalg.norm(
        solved(D, targets, penalty, curvature, bound)
        - solved(E, targets, penalty, curvature, bound)
    )
    assert moved <= row_sensitivity(bound) * (1 + 1e-9)


@given(seed=st.integers(0, 10_000), lightest=st.floats(1e-6, 1), form=st.sampled_from("ds"))
def test_with_weights_the_scaled_release_moves_by_at_most_2b(seed, lightest, form):
    generator = np.random.default_rng(seed)
    rows, bound = int(generator.integers(1, 12)), 1.5
    w = generator.uniform(lightest, 1, rows) * generator.uniform(0.1, 10)
    heaviest = int(np.argmax(w))
    D = unit_rows(generator.normal(size=(rows, 4)))
    E, i = D.copy(), heaviest if seed % 2 else int(generator.integers(rows))
    E[i] = -D[i] if seed % 3 else unit_rows(generator.normal(size=(1, 4)))[0]
    targets = bound * np.sign(generator.normal(size=(rows, 1)))

    def contribution(values):
        design = Design(sparse.csr_array(values) if form == "s" else values, weights=w)
        solver = ball_solver(design, Regulariser(1e-4, 0.0), 2.0, bound)
        return values @ solver.solve(targets, np.zeros((4, 1)))

    scaled = np.sqrt(w / w.max())[:, None] * (contribution(D) - contribution(E))
    assert np.linalg.norm(scaled) <= row_sensitivity(bound) * (1 + 1e-6)


def test_a_light_row_gets_more_noise_and_a_row_without_weight_is_not_shown():
    weights = np.array([4.0, 1.0, 0.0, 1e-20])
    noise = Noise(Privacy(epsilon=1.0, delta=1e-3), 1, 2.0, 0.5, fraction_bits_for(0.5))
    contribution = np.repeat([[1.0], [-1.0], [1.0], [1.0]], 20_000, axis=1)
    release = Release(Alone(), noise, Design(np.eye(4), weights=weights), 36, weights)
    sent, known = release(contribution, 2)
    np.testing.assert_array_equal(release.opened(sent), known)
    np.testing.assert_allclose(known.mean(axis=1), [1.0, -1.0, 0.0, 0.0], atol=0.05)
    np.testing.assert_allclose(known.std(axis=1), [0.5, 1.0, 0.0, 0.0], rtol=0.03)
    as_sent = Ring(64).decode_reals(sent, noise.fraction_bits)
    np.testing.assert_allclose(as_sent.std(axis=1), 0.5, rtol=0.03)


def test_the_bound_is_nearly_attained():
    D = np.zeros((500, 2))
    D[:, 0] = 1
    E = D.copy()
    E[0, 0] = -1
    targets = np.ones((500, 1))
    moved = np.linalg.norm(solved(D, targets, 1e-9, 1.0, 1.0) - solved(E, targets, 1e-9, 1.0, 1.0))
    assert 0.99 * row_sensitivity(1.0) < moved <= row_sensitivity(1.0)


def test_theorem_3_and_corollary_1_as_printed():
    assert theorem3_deviation(0.5, 1e-5, 2.0) == pytest.approx(
        math.sqrt(2 * math.log(1.25e5)) * 2.0 / 0.5
    )
    total, delta = corollary1(0.1, 1e-6, 20, 1e-5)
    expected = math.sqrt(40 * math.log(1e5)) * 0.1 + 20 * 0.1 * (math.exp(0.1) - 1)
    assert total == pytest.approx(expected)
    assert delta == pytest.approx(3e-5)
    one, small = corollary1_round(total, delta, 20)
    assert corollary1(one, small, 20, delta / 2)[0] == pytest.approx(total, rel=1e-6)


def test_the_plan_spends_what_was_stated_and_not_more():
    settings = AdmmSettings(
        parties=("a", "b"),
        label_parties=("a",),
        privacy=Privacy(epsilon=3.0, delta=1e-5, bound=2.0),
        max_iter=15,
    )
    noise = plan_noise(settings, 2000, 8, 0.1, 1.0)
    steps = [noise.spent(t) for t in range(1, 16)]
    assert [step.epsilon for step in steps] == sorted(step.epsilon for step in steps)
    assert 2.99 < steps[-1].epsilon <= 3.0 + 1e-6
    assert steps[-1].composed > 1.2 * steps[-1].epsilon
    assert noise.sensitivity == pytest.approx(4.0, rel=2e-4)
    published = AdmmSettings(
        parties=("a", "b"),
        label_parties=("a",),
        privacy=Privacy(epsilon=3.0, delta=1e-5, bound=2.0, mechanism="paper"),
        max_iter=15,
    )
    paper = plan_noise(published, 2000, 8, 0.1, 1.0)
    assert paper.spent(15).epsilon == math.inf  # nothing holds …
    assert paper.spent(15).composed == pytest.approx(3.0, rel=1e-3)  # … whatever the formula says
