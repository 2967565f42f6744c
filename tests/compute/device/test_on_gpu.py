"""All that runs on a device, on a GPU, with the kernels for it."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra gpu)")
if not torch.cuda.is_available():
    pytest.skip("torch finds no GPU", allow_module_level=True)

from sklearn.datasets import make_classification  # noqa: E402
from sklearn.metrics import roc_auc_score  # noqa: E402

from tests.compute.device import checks  # noqa: E402
from vertikal import FDSKLClassifier, Fourier, Landmarks  # noqa: E402
from vertikal.compute.device.transfer import Blocks, to_device  # noqa: E402

GPU = torch.device("cuda")


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("precise", [True, False])
@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("kind", checks.MAPS)
def test_products(monkeypatch, bits, kind, precise, fused):
    checks.check_products(GPU, monkeypatch, bits=bits, kind=kind, precise=precise, fused=fused)


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("kind", checks.MAPS)
def test_tall_products(monkeypatch, kind, bits):
    checks.check_tall_products(GPU, monkeypatch, bits=bits, kind=kind)


def test_the_inverse_that_preconditions(monkeypatch):
    checks.check_inverse(GPU, monkeypatch)


def test_losses():
    checks.check_losses(GPU)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("loss", ["logistic", "square", "smooth_hinge"])
def test_the_solver_finds_the_same(monkeypatch, loss, outputs):
    checks.check_solver(GPU, monkeypatch, loss=loss, outputs=outputs)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_local_phases(bits, dtype):
    checks.check_fourier_phases(GPU, bits=bits, dtype=dtype)


@pytest.mark.parametrize("bits", [16, 32])
def test_distances_to_landmarks(bits):
    checks.check_landmark_distances(GPU, bits=bits)


def test_kernel_columns():
    checks.check_kernel_columns(GPU)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("vectors", [1, 2, 3, 8, 11])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_ring_products(dtype, vectors, fused):
    checks.check_ring_products(GPU, dtype=dtype, vectors=vectors, fused=fused)
    checks.check_ring_products(GPU, dtype=dtype, vectors=vectors, rows=5003, width=300, fused=fused)


def test_blocks_arrive_whole():
    values = np.random.default_rng(0).integers(0, 255, (100_003, 97), np.uint8)
    np.testing.assert_array_equal(to_device(values, GPU).cpu().numpy().view(np.uint8), values)
    found = np.empty_like(values)
    for where, block in Blocks(GPU).each(values, 4099):
        found[where] = block.cpu().numpy()
    np.testing.assert_array_equal(found, values)


SETTINGS = {
    "open": {},
    "pairs": {"feature_map": Fourier(functions="pair")},
    "landmarks": {"feature_map": Landmarks()},
    "values": {"disclosure": "values"},
    "sealed": {"disclosure": "sealed", "loss": "square", "max_iter": 60},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_federated_fit_predicts_the_same(setting):
    X, y = make_classification(3000, 12, n_informative=8, random_state=0)
    shared = {"n_components": 128, "random_state": 0, "scale": "standard"} | SETTINGS[setting]
    here = FDSKLClassifier(3, device="cpu", **shared).fit(X[:2000], y[:2000])
    there = FDSKLClassifier(3, device="cuda", **shared).fit(X[:2000], y[:2000])
    f, g = (model.decision_function(X[2000:]) for model in (here, there))
    assert roc_auc_score(y[2000:], f) == pytest.approx(roc_auc_score(y[2000:], g), abs=2e-3)
    assert np.corrcoef(f, g)[0, 1] > 0.999
