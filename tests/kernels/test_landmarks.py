from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tests.naive.landmarks import kernel, nystrom
from vertikal.errors import RingError
from vertikal.kernels.landmarks import FAR, LandmarkMap, landmark_rows, whitening
from vertikal.ring.integers import Ring

generator = np.random.default_rng(0)
X, Z = generator.normal(size=(60, 7)), generator.normal(size=(9, 7))
PARTS = (slice(0, 2), slice(2, 3), slice(3, 7))


def summed(rows, landmarks, bandwidth, bits, **options):
    """The ring elements of three parties, added up, and one party's map."""
    maps = [LandmarkMap(Ring(bits), landmarks[:, p], bandwidth, 3, **options) for p in PARTS]
    total = maps[0].local(rows[:, PARTS[0]])
    for part, own in zip(PARTS[1:], maps[1:], strict=True):
        total = total + own.local(rows[:, part])
    return total, maps[0]


@pytest.mark.parametrize(("bits", "error"), [(16, 1e-3), (32, 2e-7)])
@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 5.0])
def test_sums_decode_to_the_kernel(bits, error, bandwidth):
    total, own = summed(X, Z, bandwidth, bits)
    assert total.dtype == f"uint{bits}"
    expected = kernel(X, Z, bandwidth)
    assert np.abs(own.decode(total, np.float64) - expected).max() < error
    assert np.abs(own.decode(total) - expected).max() < error
    kept = own.keep(total)
    assert kept.dtype == np.float32 == own.kept_dtype
    assert np.shares_memory(own.decode(kept), kept)


@pytest.mark.parametrize("bits", [16, 32])
def test_far_rows_are_far_and_never_come_round(bits):
    """Every party's part at its largest: the sum stays below 2^k, and decodes to nothing."""
    total, own = summed(X * 1e6, Z, 0.1, bits)
    assert int(total.astype(np.uint64).max()) < 2**bits
    assert own.decode(total, np.float64).max() <= np.exp(-FAR[bits]) * 1.01


def test_a_row_that_is_a_landmark_has_distance_zero():
    total, own = summed(Z, Z, 1.0, 32)
    assert np.abs(own.decode(total, np.float64).diagonal() - 1).max() < 1e-8


def test_rows_far_from_zero_lose_nothing():
    total, own = summed(X + 1e5, Z + 1e5, 1.0, 16)
    assert np.abs(own.decode(total, np.float64) - kernel(X, Z, 1.0)).max() < 2e-3


def test_scaling_and_sparse_columns():
    raw = np.where(generator.random((30, 4)) < 0.5, 0.0, generator.normal(size=(30, 4)) * 9)
    centre, factor = np.arange(4.0), np.array([1.0, 0.1, 2.0, 0.5])
    scaled = (raw - centre) * factor
    own = LandmarkMap(Ring(32), scaled[:5], 2.0, 1, centre=centre, factor=factor)
    expected = kernel(scaled, scaled[:5], 2.0)
    for block in (raw, sparse.csr_array(raw)):
        assert np.abs(own.decode(own.local(block), np.float64) - expected).max() < 1e-7


def test_what_is_not_finite_is_refused():
    own = LandmarkMap(Ring(16), Z, 1.0, 2)
    with pytest.raises(RingError, match="distances must be finite"):
        own.local(np.full((2, 7), np.nan))


def test_whitened_features_give_nystroms_kernel():
    columns, among = kernel(X, Z, 2.0), kernel(Z, Z, 2.0)
    factor = whitening(among)
    features = columns @ factor.matrix
    assert factor.rank == 9
    assert features @ features.T == pytest.approx(nystrom(columns, among), abs=1e-6)
    on_landmarks = among @ factor.matrix
    assert factor.gram == pytest.approx(on_landmarks.T @ on_landmarks / 9, abs=1e-9)


def test_landmarks_that_repeat_are_cut_and_nothing_breaks():
    twice = np.concatenate((Z, Z[:4], Z[:4] + 1e-9))
    columns, among = kernel(X, twice, 2.0), kernel(twice, twice, 2.0)
    factor = whitening(among)
    assert factor.rank == 9
    assert np.isfinite(factor.matrix).all()
    assert not factor.matrix[:, 9:].any()
    features = columns @ factor.matrix
    assert features @ features.T == pytest.approx(nystrom(columns, among), abs=1e-6)
    on_landmarks = among @ factor.matrix
    assert factor.gram == pytest.approx(on_landmarks.T @ on_landmarks / 17, abs=1e-6)


def test_a_block_carries_its_share():
    among = kernel(Z, Z, 2.0)
    whole, half = whitening(among), whitening(among, 0.25)
    assert half.matrix == pytest.approx(whole.matrix / 2)
    assert half.gram == pytest.approx(whole.gram / 4)


def test_landmarks_are_different_rows_while_there_are_any():
    chosen = landmark_rows(50, {"a": 20, "b": 10}, 3)
    assert [len(rows) for rows in chosen.values()] == [20, 10]
    assert len(set(np.concatenate(list(chosen.values())))) == 30
    more = landmark_rows(8, {"a": 20}, 3)["a"]
    assert np.bincount(more).tolist().count(2) + np.bincount(more).tolist().count(3) == 8
    assert np.array_equal(more, landmark_rows(8, {"a": 20}, 3)["a"])
