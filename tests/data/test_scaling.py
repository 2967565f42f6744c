"""Scaling against the plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from vertikal.data.scaling import learn_scaling
from vertikal.data.tables import Table


def table_of(values, form=np.asarray):
    names = tuple(f"c{i}" for i in range(values.shape[1]))
    return Table("shop", names, form(values))


def plain_scaling(values, scale):
    if scale is None:
        return np.zeros(values.shape[1]), np.ones(values.shape[1])
    if scale == "standard":
        return values.mean(axis=0), 1 / values.std(axis=0)
    if scale == "minmax":
        return values.min(axis=0), 1 / np.ptp(values, axis=0)
    return np.zeros(values.shape[1]), 1 / np.abs(values).max(axis=0)


@pytest.mark.parametrize("scale", [None, "standard", "minmax", "max"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("rows", [50, 9000])
def test_scaling_equals_the_plain_formulas(scale, form, rows):
    """Also of more rows than are looked at in one go."""
    generator = np.random.default_rng(0)
    values = generator.normal(2, 3, (rows, 4)) * (generator.random((rows, 4)) < 0.6)
    centre, factor = learn_scaling(table_of(values, form), scale).arrays()
    expected = plain_scaling(values, scale)
    np.testing.assert_allclose(centre, expected[0], atol=1e-12)
    np.testing.assert_allclose(factor, expected[1], rtol=1e-12)


@pytest.mark.parametrize("rows", [60, 9000])
def test_a_column_far_from_zero_keeps_its_deviation(rows):
    values = 1e9 + np.random.default_rng(0).normal(size=(rows, 1))
    _, factor = learn_scaling(table_of(values), "standard").arrays()
    np.testing.assert_allclose(factor, 1 / values.std(axis=0), rtol=1e-6)


@pytest.mark.parametrize("scale", ["standard", "minmax", "max"])
@pytest.mark.parametrize("value", [0.0, 0.1, 3.7])
@pytest.mark.parametrize("rows", [10, 121])
def test_a_sparse_column_without_spread_keeps_its_unit(scale, value, rows):
    values = np.column_stack([np.full(rows, value), np.arange(rows)])
    _, factor = learn_scaling(table_of(values, sparse.csr_array), scale).arrays()
    expected = 1 / value if scale == "max" and value else 1.0
    assert factor[0] == pytest.approx(expected)
