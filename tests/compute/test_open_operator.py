"""Φ as an operator against the explicit matrix: cached, partly cached, by rows and by columns."""

from __future__ import annotations

import numpy as np
import pytest

from tests.naive.phases import features
from vertikal.compute import open_operator as module
from vertikal.compute.open_operator import OpenOperator
from vertikal.kernels.random_features import FourierMap
from vertikal.ring.integers import Ring

ROWS, WIDTH = 90, 22
GENERATOR = np.random.default_rng(0)
SUBSETS = {
    "all": None,
    "some": np.array([3, 80, 3, 41]),
    "cached": np.array([5, 0, 12]),
    "uncached": np.array([88, 60]),
    "none": np.array([], int),
}


class Source:
    """Phases of all rows, and a fetch that hands them out in blocks of 7 and counts them."""

    def __init__(self, bits, rows=ROWS, width=WIDTH, **kind):
        self.ring = Ring(bits)
        self.map = FourierMap(self.ring, np.zeros((1, width)), np.zeros(width), width, **kind)
        self.phases = np.random.default_rng(bits).integers(
            0, 2**bits, (rows, width), self.ring.dtype
        )
        self.features = features(self.phases, **kind) / np.sqrt(width)
        self.fetched = 0

    def fetch(self, rows):
        for start in range(0, len(rows), 7):
            where = slice(start, min(start + 7, len(rows)))
            self.fetched += where.stop - where.start
            yield where, self.phases[rows[where]]

    def operator(self, kept, threads=1):
        fetch = self.fetch if kept < len(self.phases) else None
        return OpenOperator(self.map, len(self.phases), self.phases[:kept], fetch, threads)


@pytest.fixture(params=["precise", "single", "partly", "nothing"])
def mode(request, monkeypatch):
    """Double precision, single precision, part of the rows cached, no row cached."""
    if request.param != "precise":
        monkeypatch.setattr(module, "PRECISE", 0)
    return request.param


def kept_rows(mode):
    return {"precise": ROWS, "single": ROWS, "partly": 30, "nothing": 0}[mode]


def tolerance(mode):
    return 1e-13 if mode == "precise" else 5e-6


KINDS = {
    "cosine": {},
    "pair": {"functions": "pair"},
    "harmonics": {"functions": "pair", "harmonics": (1, 3)},
}


@pytest.fixture(params=KINDS)
def kind(request):
    """The features that each phase gives."""
    return KINDS[request.param]


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("subset", SUBSETS)
@pytest.mark.parametrize("columns", [slice(None), slice(5, 13)])
def test_products_with_the_explicit_matrix(mode, bits, outputs, subset, columns, kind):
    source = Source(bits, **kind)
    operator = source.operator(kept_rows(mode))
    rows = SUBSETS[subset]
    matrix = source.features[slice(None) if rows is None else rows][:, columns]
    coefficients = GENERATOR.normal(size=(matrix.shape[1], outputs))
    residuals = GENERATOR.normal(size=(len(matrix), outputs))
    values = operator.forward(coefficients, rows, columns)
    gathered = operator.adjoint(residuals, rows, columns)
    assert values.dtype == gathered.dtype == np.float64
    np.testing.assert_allclose(values, matrix @ coefficients, atol=tolerance(mode))
    np.testing.assert_allclose(gathered, matrix.T @ residuals, atol=tolerance(mode))
    # The adjoint identity ⟨Φa, r⟩ = ⟨a, Φᵀr⟩.
    left, right = np.sum(values * residuals), np.sum(coefficients * gathered)
    assert left == pytest.approx(right, abs=50 * tolerance(mode))


@pytest.mark.parametrize("subset", ["some", "cached", "uncached"])
@pytest.mark.parametrize("columns", [slice(None), slice(5, 13), slice(15, 30)])
@pytest.mark.parametrize("panel", [module.PANEL, 7])
def test_gram_against_the_explicit_matrix(monkeypatch, mode, subset, columns, panel, kind):
    monkeypatch.setattr(module, "PANEL", panel)
    source = Source(8, **kind)
    operator = source.operator(kept_rows(mode))
    rows = SUBSETS[subset]
    weights = GENERATOR.random(len(rows))
    matrix = source.features[rows][:, columns]
    gram = operator.gram(rows, weights, columns)
    assert gram.dtype == np.float64
    np.testing.assert_allclose(gram, matrix.T @ np.diag(weights) @ matrix, atol=tolerance(mode))
    if mode != "precise":
        np.testing.assert_array_equal(gram, gram.T)


@pytest.mark.parametrize("subset", ["some", "cached", "uncached"])
@pytest.mark.parametrize("columns", [slice(None), slice(5, 13)])
def test_some_rows_as_an_operator_of_their_own(mode, subset, columns, kind):
    source = Source(8, **kind)
    rows = SUBSETS[subset]
    batch = source.operator(kept_rows(mode)).restricted(rows)
    asked = source.fetched
    assert (batch.rows, batch.width) == (len(rows), source.features.shape[1])
    matrix = source.features[rows][:, columns]
    coefficients, residuals = np.ones((matrix.shape[1], 2)), np.ones((len(rows), 2))
    near = {"atol": tolerance(mode)}
    np.testing.assert_allclose(
        batch.forward(coefficients, columns=columns), matrix @ coefficients, **near
    )
    np.testing.assert_allclose(
        batch.adjoint(residuals, columns=columns), matrix.T @ residuals, **near
    )
    pick, weights = np.array([1, 0]), np.array([0.3, 0.7])
    np.testing.assert_allclose(
        batch.forward(coefficients, pick, columns), matrix[pick] @ coefficients, **near
    )
    np.testing.assert_allclose(
        batch.gram(pick, weights, columns), (matrix[pick].T * weights) @ matrix[pick], **near
    )
    # However many products follow, a row is fetched once at most.
    assert source.fetched == asked <= len(rows)


def test_rows_in_the_cache_are_not_fetched(mode):
    source = Source(8)
    operator = source.operator(kept_rows(mode))
    coefficients = np.ones((WIDTH, 1))
    operator.forward(coefficients)
    assert source.fetched == ROWS - kept_rows(mode)
    source.fetched = 0
    operator.forward(coefficients, SUBSETS["cached"])
    assert source.fetched == (3 if mode == "nothing" else 0)


def test_without_fetch_missing_rows_are_an_error():
    source = Source(8)
    operator = OpenOperator(source.map, ROWS, source.phases[:10])
    with pytest.raises(IndexError, match="beyond the 10 cached ones"):
        operator.forward(np.ones((WIDTH, 1)))


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_number_of_threads_does_not_change_a_bit(monkeypatch, outputs):
    monkeypatch.setattr(module, "PRECISE", 0)
    monkeypatch.setattr(module, "CHUNK", 64)
    source = Source(8, rows=1000)
    rows, weights = np.arange(1000), np.random.default_rng(1).random(1000)
    coefficients = np.random.default_rng(2).normal(size=(WIDTH, outputs))
    residuals = np.random.default_rng(3).normal(size=(1000, outputs))
    results = []
    for threads in (1, 2, 5):
        operator = source.operator(1000, threads)
        results.append(
            (
                operator.forward(coefficients),
                operator.adjoint(residuals),
                operator.gram(rows, weights),
            )
        )
    for other in results[1:]:
        for one, same in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, same)
    np.testing.assert_allclose(results[0][0], source.features @ coefficients, atol=5e-6)
    np.testing.assert_allclose(results[0][1], source.features.T @ residuals, atol=5e-5)


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(module, "PRECISE", 0)
    monkeypatch.setattr(module, "CHUNK", 16)
    source = Source(8)

    def broken(total, coefficients):
        raise MemoryError("no more")

    monkeypatch.setattr(source.map, "forward", broken)
    with pytest.raises(MemoryError, match="no more"):
        source.operator(ROWS, threads=2).forward(np.ones((WIDTH, 1)))
