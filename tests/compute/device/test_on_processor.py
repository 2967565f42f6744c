"""All that runs on a device, by torch's build for processors."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra gpu)")

from tests.compute.device import checks  # noqa: E402

CPU = torch.device("cpu")


@pytest.mark.parametrize("precise", [True, False])
@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("kind", checks.MAPS)
def test_products(monkeypatch, bits, kind, precise):
    checks.check_products(CPU, monkeypatch, bits=bits, kind=kind, precise=precise)


def test_products_with_several_vectors(monkeypatch):
    checks.check_products(CPU, monkeypatch, bits=8, kind="pair", precise=False, outputs=3)


@pytest.mark.parametrize("kind", checks.MAPS)
def test_tall_products(monkeypatch, kind):
    checks.check_tall_products(CPU, monkeypatch, bits=8, kind=kind)


def test_the_inverse_that_preconditions(monkeypatch):
    checks.check_inverse(CPU, monkeypatch)


def test_losses():
    checks.check_losses(CPU)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("loss", ["logistic", "square", "smooth_hinge"])
def test_the_solver_finds_the_same(monkeypatch, loss, outputs):
    checks.check_solver(CPU, monkeypatch, loss=loss, outputs=outputs)


class Doubled:
    """Sums of two label parties that hold the same, as arrays."""

    def rows(self, partial):
        return 2 * np.asarray(partial)

    def scalars(self, partial):
        return 2 * partial


def test_sums_over_label_parties_come_back_as_arrays(monkeypatch):
    checks.check_solver(CPU, monkeypatch, loss="square", outputs=1, sums=Doubled())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_local_phases(bits, dtype):
    checks.check_fourier_phases(CPU, bits=bits, dtype=dtype)


@pytest.mark.parametrize("bits", [16, 32])
def test_distances_to_landmarks(bits):
    checks.check_landmark_distances(CPU, bits=bits)


def test_kernel_columns():
    checks.check_kernel_columns(CPU)


@pytest.mark.parametrize("vectors", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_ring_products(dtype, vectors):
    checks.check_ring_products(CPU, dtype=dtype, vectors=vectors)


@pytest.fixture
def in_blocks(monkeypatch):
    """Let everything be done a few rows at a time."""
    monkeypatch.setattr("vertikal.compute.device.device_ring_matrix.MULTIPLIED", 500)
    monkeypatch.setattr("vertikal.compute.device.phase_decoding.DECODED", 400)
    monkeypatch.setattr("vertikal.compute.device.local_parts.TILE", 1000)
    monkeypatch.setattr("vertikal.compute.device.transfer.BUFFER", 300)


@pytest.mark.usefixtures("in_blocks")
def test_blocks_of_rows_make_no_difference(monkeypatch):
    for dtype in (np.uint32, np.uint64):
        checks.check_ring_products(CPU, dtype=dtype, vectors=2)
    checks.check_products(CPU, monkeypatch, bits=8, kind="pair", precise=False)
    checks.check_products(CPU, monkeypatch, bits=8, kind="cosine", precise=False, outputs=2)
    checks.check_inverse(CPU, monkeypatch)
    checks.check_fourier_phases(CPU, bits=8)
    checks.check_landmark_distances(CPU, bits=16)
