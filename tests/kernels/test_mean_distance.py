"""The mean distance over all pairs, against the pairs themselves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tests.naive.kernels import mean_distance_of_all_pairs
from vertikal.errors import InputError
from vertikal.kernels import mean_distance as module
from vertikal.kernels.mean_distance import checked_mean, mean_distance
from vertikal.kernels.spectral import KERNELS

FACTOR = np.array([1.0, 0.5, 4.0, -2.0])


def found(name, values, factor=FACTOR):
    return mean_distance(KERNELS[name], lambda rows: values[rows], values.shape[0], factor)


def table(rows=23, zeros=0.6):
    generator = np.random.default_rng(0)
    values = generator.normal(1, 2, (rows, 4))
    return np.where(generator.random(values.shape) < zeros, 0.0, values)


@pytest.mark.parametrize("name", ["gaussian", "laplace", "matern12", "matern32"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("zeros", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("cells", [1, 30, 1 << 22])
def test_it_is_the_mean_over_all_pairs(monkeypatch, name, form, zeros, cells):
    monkeypatch.setattr(module, "CELLS", cells)
    values = table(zeros=zeros)
    expected = mean_distance_of_all_pairs(name, values * FACTOR)
    assert found(name, form(values)) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(("name", "mean"), [("gaussian", 14 / 3), ("laplace", 2.0)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_by_hand(name, mean, form):
    column = form(np.array([[4.0], [1.0], [2.0]]))
    assert found(name, column, np.ones(1)) == pytest.approx(mean, rel=1e-14)


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_shares_of_columns_add_up(name):
    values = table()
    parts = [found(name, values[:, cut], FACTOR[cut]) for cut in (slice(0, 1), slice(1, 4))]
    assert sum(parts) == pytest.approx(found(name, values), rel=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_columns_far_from_zero_lose_no_digits(name):
    values = np.arange(20.0).reshape(5, 4) ** 2
    assert found(name, values + 2.0**40) == found(name, values)


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_columns_that_do_not_vary_are_at_no_distance(name):
    assert found(name, np.full((7, 4), 0.1)) == 0.0
    assert found(name, np.empty((7, 0)), np.empty(0)) == 0.0


def test_sparse_columns_stay_sparse(monkeypatch):
    values = sparse.random_array((200, 500), density=0.01, rng=0, format="csr")
    dense, factor = values.toarray(), np.ones(500)
    for form in (sparse.csr_array, sparse.csc_array):
        monkeypatch.setattr(form, "toarray", None)
    for name in ("gaussian", "laplace"):
        expected = found(name, dense, factor)
        assert found(name, values, factor) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rows", [0, 1])
def test_one_row_has_no_distance(rows):
    with pytest.raises(InputError, match=r"^bandwidth must be a number where .*, got 'mean'$"):
        found("gaussian", np.empty((rows, 4)))


def test_a_mean_of_nothing_is_refused():
    assert checked_mean(2.5) == 2.5
    with pytest.raises(InputError, match="'mean' needs rows that differ"):
        checked_mean(0.0)
