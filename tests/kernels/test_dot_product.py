from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import dot_product as naive
from vertikal.errors import InputError
from vertikal.kernels import dot_product

generator = np.random.default_rng(0)
X, Z = generator.normal(size=(5, 4)), generator.normal(size=(3, 4))
LEFT, RIGHT = (X**2).sum(axis=1), (Z**2).sum(axis=1)


def each(function, left=X, right=Z):
    return np.array([[function(x, z) for z in right] for x in left])


def test_rbf():
    found = dot_product.rbf(X @ Z.T, LEFT, RIGHT, 0.3)
    assert found == pytest.approx(each(lambda x, z: naive.rbf(x, z, 0.3)))


def test_distances_are_not_negative():
    far = X + 1e8
    lengths = (far**2).sum(axis=1)
    assert dot_product.squared_distances(far @ far.T, lengths, lengths).min() >= 0


def test_polynomial():
    found = dot_product.polynomial(X @ Z.T, 3, 0.5, 2.0)
    assert found == pytest.approx(each(lambda x, z: naive.polynomial(x, z, 3, 0.5, 2.0)))


@pytest.mark.parametrize("a", [(2.0,), (0.0, 1.0), (1.0, 0.0, 0.5, 0.25)])
def test_dot_product_polynomial(a):
    found = dot_product.dot_product_polynomial(X @ Z.T, a)
    assert found == pytest.approx(each(lambda x, z: naive.dot_product_polynomial(x, z, a)))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_boolean_kernels_count_formulas(data):
    variables = data.draw(st.integers(1, 6))
    degree = data.draw(st.integers(1, variables))
    row = st.lists(st.integers(0, 1), min_size=variables, max_size=variables)
    x, z = np.array(data.draw(row)), np.array(data.draw(row))
    gram = np.array([[x @ z]])
    left, right = np.array([x.sum()]), np.array([z.sum()])
    assert dot_product.conjunctive(gram, degree)[0, 0] == naive.conjunctive(x, z, degree)
    found = dot_product.disjunctive(gram, left, right, variables, degree)
    assert found[0, 0] == naive.disjunctive(x, z, degree)


def test_normalised_rows_have_length_one_or_none():
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]])
    lengths = (rows**2).sum(axis=1)
    found = dot_product.normalised(rows @ rows.T, lengths, lengths)
    assert found.diagonal() == pytest.approx([1, 0, 1])
    assert found[0, 2] == pytest.approx(0.6)


@pytest.mark.parametrize("coefficients", [(), (1.0, -1.0), (np.inf,)])
def test_no_kernel_is_refused(coefficients):
    with pytest.raises(InputError, match="coefficients must be"):
        dot_product.dot_product_polynomial(X @ Z.T, coefficients)


@pytest.mark.parametrize("gram", [np.array([[-1.0]]), np.array([[0.5]])])
def test_boolean_kernels_want_counts(gram):
    with pytest.raises(InputError, match="'conjunctive' must be given counts"):
        dot_product.conjunctive(gram, 2)
    with pytest.raises(InputError, match="'disjunctive' must be given counts"):
        dot_product.disjunctive(gram, np.ones(1), np.ones(1), 3, 2)
