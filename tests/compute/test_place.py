"""The place of a party's products: which device is taken, and what is refused."""

from __future__ import annotations

import importlib.util
import threading
import time

import numpy as np
import pytest

from vertikal import FDSKLClassifier, KernelClassifier, Stochastic
from vertikal.compute.device.choice import AUTOMATIC, choose_device
from vertikal.compute.open_operator import OpenOperator
from vertikal.compute.place import Place, as_slice
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.kernels.landmarks import LandmarkMap
from vertikal.kernels.random_features import FourierMap
from vertikal.ring.integers import Ring
from vertikal.ring.ring_matrix import RingMatrix

GENERATOR = np.random.default_rng(0)
X, Y = GENERATOR.normal(size=(40, 4)), GENERATOR.random(40) > 0.5


class Watched(FourierMap):
    """Says which threads compute its elements."""

    def __init__(self):
        super().__init__(Ring(8), np.ones((4, 6)), np.zeros(6), 6)
        self.threads = []

    def add_local(self, block, out):
        self.threads.append(threading.get_ident())
        super().add_local(block, out)


class Sevens:
    """Pads that are all 7."""

    def write(self, out):
        out[...] = 7


@pytest.mark.parametrize("count", [1, 4])
def test_with_several_cores_blocks_are_begun_before_they_are_needed(monkeypatch, count):
    monkeypatch.setattr("vertikal.compute.place.cores", lambda: count)
    monkeypatch.setattr("vertikal.side_by_side.cores", lambda: count)
    place, watched, table = Place(), Watched(), Table("bank", tuple("abcd"), X)
    rows, room = np.arange(8, 24), np.empty((16, 6), np.uint8)

    waiting = place.begin_local(watched, table, rows, Sevens(), room)
    until = time.monotonic() + 10
    while count > 1 and not watched.threads and time.monotonic() < until:
        time.sleep(0.001)
    assert len(watched.threads) == (count > 1)
    assert waiting() is room
    assert (watched.threads[0] == threading.get_ident()) is (count == 1)
    np.testing.assert_array_equal(room, watched.local(X[8:24]) + np.uint8(7))
    assert place.ahead(table, 16) == (1 if count == 1 else count + 1)


@pytest.mark.parametrize("device", ["no device", "a device"])
@pytest.mark.parametrize("room", [None, np.full((len(X), 6), 9, np.uint8)])
@pytest.mark.parametrize("kind", [FourierMap, LandmarkMap])
def test_elements_are_masked_wherever_they_are_computed(monkeypatch, device, room, kind):
    if device == "a device":
        torch = pytest.importorskip("torch")
        monkeypatch.setattr("vertikal.compute.place.choose_device", lambda *_: torch.device("cpu"))
    feature_map = (
        FourierMap(Ring(8), np.ones((4, 6)), np.zeros(6), 6)
        if kind is FourierMap
        else LandmarkMap(Ring(16), X[:6], 1.0, 2)
    )
    if room is not None:
        room = room.astype(feature_map.ring.dtype)
    masked = Place().masked(feature_map, X, len(X), Sevens(), room)
    assert room is None or masked is room
    assert masked.dtype == feature_map.ring.dtype
    np.testing.assert_array_equal(masked, feature_map.local(X) + masked.dtype.type(7))


@pytest.fixture
def without_torch(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "vertikal.compute.device.choice.find_spec",
        lambda name: None if name == "torch" else found(name),
    )


@pytest.mark.usefixtures("without_torch")
def test_without_torch_only_cuda_is_refused():
    assert choose_device("auto", AUTOMATIC) is None
    assert choose_device("cpu", AUTOMATIC) is None
    with pytest.raises(InputError, match=r'needs torch.*pip install "vertikal\[gpu\]"'):
        choose_device("cuda", 1)
    with pytest.raises(InputError, match="needs torch"):
        FDSKLClassifier(device="cuda", n_components=8).fit(X, Y)


def test_small_problems_do_not_look_for_a_device(monkeypatch):
    monkeypatch.setattr("vertikal.compute.device.choice.find_spec", lambda name: 1 / 0)
    assert choose_device("auto", AUTOMATIC - 1) is None


def test_an_unknown_device_is_refused():
    with pytest.raises(InputError, match="device must be one of 'auto', 'cpu', 'cuda', got 'tpu'"):
        FDSKLClassifier(device="tpu", n_components=8).fit(X, Y)


def test_here_products_are_those_of_the_package():
    place = Place()
    feature_map = FourierMap(Ring(8), GENERATOR.normal(size=(4, 6)), np.zeros(6), 6)
    phases = place.local(feature_map, X, len(X))
    np.testing.assert_array_equal(phases, feature_map.local(X))
    assert type(place.operator(feature_map, len(X), phases)) is OpenOperator
    assert type(place.matrices((3, 2), np.uint64)) is RingMatrix


def test_torch_without_a_gpu():
    torch = pytest.importorskip("torch", reason="torch is not installed (extra gpu)")
    if torch.cuda.is_available():
        pytest.skip("torch finds a GPU")
    assert choose_device("auto", AUTOMATIC) is None
    with pytest.raises(InputError, match="where torch finds no GPU, got 'cuda'"):
        choose_device("cuda", 1)


LEVELS = {
    "open": {},
    "several label parties": {"label_parties": 2},
    "classes": {},
    "landmarks": {"feature_map": "landmarks"},
    "stochastic": {"solver": Stochastic(n_steps=5)},
    "values": {"disclosure": "values", "tol": 0.2},
    "sealed": {"disclosure": "sealed", "loss": "square", "max_iter": 5},
}


@pytest.fixture
def by_torch(monkeypatch):
    """Let every party compute by torch's build for processors, as it would on a GPU."""
    torch = pytest.importorskip("torch", reason="torch is not installed (extra gpu)")
    cpu = torch.device("cpu")
    choices = {"cpu": None, "cuda": cpu}
    chosen = ["cpu"]
    monkeypatch.setattr(
        "vertikal.compute.place.choose_device", lambda name, elements: choices[chosen[0]]
    )
    return lambda name: chosen.__setitem__(0, name)


@pytest.mark.parametrize("level", LEVELS)
def test_a_fit_by_torch_predicts_the_same(by_torch, level):
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(300, 6))
    labels = rows[:, 0] * rows[:, 1] + rows[:, 4] > 0
    if level == "classes":
        labels = np.digitize(rows[:, 0] + rows[:, 3], [-1, 1])
    found = []
    for device in ("cpu", "cuda"):
        by_torch(device)
        model = FDSKLClassifier(3, n_components=64, random_state=0, **LEVELS[level])
        found.append(model.fit(rows, labels).decision_function(rows))
    if level in ("values", "sealed"):
        # Noise and rounding by chance are drawn anew in each fit and prediction.
        assert np.corrcoef(*found)[0, 1] > 0.95
    else:
        np.testing.assert_allclose(*found, atol=2e-3 if level == "landmarks" else 1e-5)


def test_an_estimator_that_tunes_itself_finds_the_same_by_torch(by_torch):
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(200, 5))
    found = []
    for device in ("cpu", "cuda"):
        by_torch(device)
        model = KernelClassifier(2, random_state=0, n_components=64)
        found.append(model.fit(rows, rows[:, 0] * rows[:, 3] > 0).decision_function(rows))
    np.testing.assert_allclose(*found, atol=1e-3)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (range(3, 7), slice(3, 7)),
        (np.arange(3, 7), slice(3, 7)),
        (range(3, 9, 2), [3, 5, 7]),
        (range(5, 2, -1), [5, 4, 3]),
        (np.array([4, 5, 7]), [4, 5, 7]),
    ],
)
def test_only_neighbouring_rows_are_a_slice(rows, expected):
    found = as_slice(rows)
    assert (found if isinstance(expected, slice) else list(found)) == expected
