from __future__ import annotations

import numpy as np
import pytest

from vertikal.compute.open_operator import OpenOperator
from vertikal.kernels.landmarks import LandmarkMap, whitening
from vertikal.ring.integers import Ring
from vertikal.solvers.feature_operator import FeatureOperator
from vertikal.solvers.whitened_operator import WhitenedOperator

generator = np.random.default_rng(0)
X = generator.normal(size=(70, 5))
OWN = LandmarkMap(Ring(32), X[:12], 1.5, 1)
C = OWN.keep(OWN.local(X))
FACTOR = whitening(OWN.decode(OWN.local(X[:12]), np.float64))
PHI = C.astype(np.float64) @ FACTOR.matrix
ROWS = np.array([3, 50, 7, 7])
COLUMNS = slice(2, 9)


@pytest.fixture
def operator() -> WhitenedOperator:
    return WhitenedOperator(OpenOperator(OWN, 70, C), FACTOR.matrix, FACTOR.gram)


@pytest.mark.parametrize("rows", [None, ROWS])
@pytest.mark.parametrize("columns", [slice(None), COLUMNS])
def test_products_are_those_of_the_written_out_features(operator, rows, columns):
    part = (PHI if rows is None else PHI[rows])[:, columns]
    a, r = generator.normal(size=(part.shape[1], 2)), generator.normal(size=(len(part), 2))
    assert operator.forward(a, rows, columns) == pytest.approx(part @ a, abs=1e-4)
    assert operator.adjoint(r, rows, columns) == pytest.approx(part.T @ r, abs=1e-4)


def test_few_rows_have_their_own_covariance(operator):
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    part = PHI[ROWS][:, COLUMNS]
    expected = (part.T * weights) @ part
    assert operator.gram(ROWS, weights, COLUMNS) == pytest.approx(expected, abs=1e-4)
    batch = operator.restricted(ROWS)
    assert batch.gram(np.arange(4), weights, COLUMNS) == pytest.approx(expected, abs=1e-4)
    assert batch.forward(np.ones((12, 1))) == pytest.approx(
        PHI[ROWS].sum(axis=1)[:, None], abs=1e-4
    )


def test_many_rows_have_that_of_the_landmarks(operator):
    many = np.arange(70)
    on_landmarks = PHI[:12].T @ PHI[:12] / 12
    found = operator.gram(many, np.full(70, 1 / 70))
    assert found == pytest.approx(on_landmarks, abs=1e-4)
    found += 1.0
    assert operator.gram(many, np.full(70, 1 / 70)) == pytest.approx(on_landmarks, abs=1e-4)


def test_weights_that_differ_are_in_the_covariance(operator):
    many = np.arange(70)
    weights = np.where(many % 2, 0.03, 0.002)
    expected = (PHI.T * weights) @ PHI
    assert operator.gram(many, weights) == pytest.approx(expected, abs=1e-4)
    part = operator.gram(many, weights, COLUMNS)
    assert part == pytest.approx(expected[COLUMNS, COLUMNS], abs=1e-4)


def test_a_few_rows_with_all_the_weight_tell_less_than_landmarks(operator):
    weights = np.where(np.arange(70) < 3, 1.0, 1e-6)
    on_landmarks = PHI[:12].T @ PHI[:12] / 12 * weights.sum()
    assert operator.gram(np.arange(70), weights) == pytest.approx(on_landmarks, abs=1e-4)


def test_hidden_columns_have_the_covariance_of_the_landmarks():
    hidden = WhitenedOperator(Closed(), FACTOR.matrix, FACTOR.gram)
    weights = np.where(np.arange(70) % 2, 0.03, 0.002)
    found = hidden.gram(np.arange(70), weights)
    assert found == pytest.approx(FACTOR.gram * weights.sum(), abs=1e-12)


def test_coefficients_are_spread_over_the_kernel_columns(operator):
    a = generator.normal(size=(12, 1))
    assert C @ operator.spread(a) == pytest.approx(PHI @ a, abs=1e-4)


class Closed(FeatureOperator):
    rows, width = 70, 12
    forward = adjoint = None  # type: ignore[assignment]


def test_columns_without_a_gram_matrix_give_none():
    assert WhitenedOperator(Closed(), FACTOR.matrix, FACTOR.gram).gram(ROWS, np.ones(4)) is None
