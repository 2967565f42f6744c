"""A matrix as an operator: products with some rows and columns of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from vertikal.compute.matrix_operator import MatrixOperator

GENERATOR = np.random.default_rng(0)
VALUES = GENERATOR.normal(size=(9, 4))
ROWS = np.array([3, 3, 0, 8])
SOME = slice(1, 4)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("intercept", [False, True])
def test_products(form, intercept):
    operator = MatrixOperator(form(VALUES), intercept=intercept)
    matrix = np.hstack((VALUES, np.ones((9, 1)))) if intercept else VALUES
    assert (operator.rows, operator.width) == matrix.shape
    a, r = GENERATOR.normal(size=(matrix.shape[1], 2)), GENERATOR.normal(size=(4, 2))
    np.testing.assert_allclose(operator.forward(a), matrix @ a)
    np.testing.assert_allclose(
        operator.forward(a[SOME], ROWS, SOME), matrix[ROWS][:, SOME] @ a[SOME]
    )
    np.testing.assert_allclose(operator.adjoint(r, ROWS, SOME), matrix[ROWS][:, SOME].T @ r)
    gram = operator.gram(ROWS, np.arange(4.0), SOME)
    if form is np.asarray:
        chosen = matrix[ROWS][:, SOME]
        np.testing.assert_allclose(gram, chosen.T @ np.diag(np.arange(4.0)) @ chosen)
    else:
        assert gram is None
