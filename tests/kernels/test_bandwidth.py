"""The arithmetic of the median bandwidth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from vertikal.errors import InputError
from vertikal.kernels.bandwidth import PAIRS, pair_distances, sample_pairs, weighted_median
from vertikal.kernels.spectral import KERNELS


@pytest.mark.parametrize(
    ("distances", "weights", "median"),
    [
        ([3.0], [1.0], 3.0),
        ([5.0, 1.0, 3.0], [1, 1, 1], 3.0),
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1], 2.0),
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 4], 4.0),
        ([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 0], 3.0),
        ([0.0, 0.0, 0.0, 7.0, 9.0], [1, 1, 1, 1, 1], 7.0),
        ([4.0, 4.0, 1.0], [0.2, 0.2, 0.3], 4.0),
    ],
)
def test_weighted_median_by_hand(distances, weights, median):
    assert weighted_median(np.array(distances), np.array(weights, float)) == median


def test_copies_of_rows_equal_weights():
    points = np.random.default_rng(0).normal(size=12)
    weights = np.array([1, 2, 3] * 4)
    pairs = sample_pairs(12, 0)
    gaps = np.abs(np.subtract(*points[pairs].T))
    by_weight = weighted_median(gaps, weights[pairs].prod(axis=1).astype(float))
    copies = np.repeat(points, weights)
    pairs = sample_pairs(len(copies), 0)
    gaps = np.abs(np.subtract(*copies[pairs].T))
    assert weighted_median(gaps, np.ones(len(pairs))) == by_weight
    assert by_weight != weighted_median(gaps, gaps)


@pytest.mark.parametrize(
    ("distances", "weights"), [([0.0, 0.0], [1.0, 1.0]), ([2.0, 3.0], [0.0, 0.0])]
)
def test_no_two_rows_that_differ(distances, weights):
    with pytest.raises(InputError, match=r"^bandwidth: 'median' needs rows that differ.*a number$"):
        weighted_median(np.array(distances), np.array(weights))


def test_few_rows_give_all_pairs():
    pairs = sample_pairs(5, 0)
    assert {tuple(pair) for pair in pairs.tolist()} == {
        (i, j) for i in range(5) for j in range(i + 1, 5)
    }


def test_many_rows_give_a_public_sample_of_pairs():
    pairs = sample_pairs(1000, 7)
    assert pairs.shape == (PAIRS, 2)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert pairs.min() >= 0
    assert pairs.max() < 1000
    np.testing.assert_array_equal(pairs, sample_pairs(1000, 7))
    assert (pairs != sample_pairs(1000, 8)).any()
    # Every row is about as likely on either side.
    counts = np.bincount(pairs.ravel() // 100)
    assert counts.min() > 300


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_distances_of_pairs(form):
    values, factor = np.random.default_rng(0).normal(size=(6, 3)), np.array([1.0, 0.5, 4.0])
    pairs = sample_pairs(6, 0)
    held = form(values)
    for name, power in (("gaussian", 2), ("laplace", 1)):
        found = pair_distances(KERNELS[name], lambda rows: held[rows], factor, pairs)
        expected = [(np.abs(values[i] - values[j]) * factor) ** power for i, j in pairs]
        np.testing.assert_allclose(found, np.sum(expected, axis=1))


@pytest.mark.parametrize(("rows", "width"), [(70, 1500), (2, 3_000_000)])
def test_wide_rows_are_read_few_at_a_time(rows, width):
    """Row i has the value i in each column: two of them differ by as much in each."""
    pairs, reads = sample_pairs(rows, 0), []

    def read(numbers):
        reads.append(len(numbers) * width)
        return np.broadcast_to(numbers[:, None].astype(float), (len(numbers), width))

    found = pair_distances(KERNELS["laplace"], read, np.full(width, 2.0), pairs)
    np.testing.assert_allclose(found, 2.0 * width * np.abs(pairs[:, 0] - pairs[:, 1]))
    assert max(reads) <= max(width, 2_100_000)


@pytest.mark.parametrize("rows", [0, 1])
def test_one_row_has_no_distance(rows):
    with pytest.raises(InputError, match=r"^bandwidth must be a number where .*, got 'median'$"):
        sample_pairs(rows, 0)
