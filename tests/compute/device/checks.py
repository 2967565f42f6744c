"""Checks of everything that runs on a device of torch, for whichever device they are given."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.naive.landmarks import kernel
from tests.naive.phases import features
from vertikal.compute import open_operator
from vertikal.compute.device.device_losses import DEVICE_LOSSES
from vertikal.compute.device.device_operator import DeviceOperator
from vertikal.compute.device.device_ring_matrix import DeviceRingMatrix
from vertikal.compute.device.local_parts import LocalPart
from vertikal.compute.open_operator import OpenOperator
from vertikal.errors import RingError
from vertikal.kernels.landmarks import LandmarkMap
from vertikal.kernels.random_features import FourierMap
from vertikal.losses.pointwise import LOSSES
from vertikal.ring.integers import Ring
from vertikal.solvers.lbfgs import sample_rows, solve
from vertikal.solvers.objective import RowObjective

ROWS, WIDTH = 90, 22
MAPS = {
    "cosine": {},
    "pair": {"functions": "pair"},
    "harmonics": {"functions": "pair", "harmonics": (1, 3)},
}
SUBSETS = {"all": None, "some": np.array([3, 80, 3, 41]), "none": np.array([], int)}


def phases_and_map(bits, rows=ROWS, width=WIDTH, seed=0, **kind):
    """Random phases, their map, and the features as the naive twin has them."""
    ring = Ring(bits)
    feature_map = FourierMap(ring, np.zeros((1, width)), np.zeros(width), width, **kind)
    phases = np.random.default_rng(seed + bits).integers(0, 2**bits, (rows, width), ring.dtype)
    return phases, feature_map, features(phases, **kind) / np.sqrt(width)


def check_products(device, monkeypatch, *, bits, kind, precise, outputs=1, fused=True):
    """Both products and the Gram matrix against the explicit matrix, by rows and by columns."""
    if not precise:
        monkeypatch.setattr(open_operator, "PRECISE", 0)
    phases, feature_map, matrix = phases_and_map(bits, **MAPS[kind])
    operator = DeviceOperator(feature_map, phases, device, fused=fused)
    assert (operator.rows, operator.width) == matrix.shape
    near = {"atol": 1e-12 if precise else 5e-6}
    generator = np.random.default_rng(1)
    for rows in SUBSETS.values():
        for columns in (slice(None), slice(5, 13)):
            part = matrix[slice(None) if rows is None else rows][:, columns]
            coefficients = generator.normal(size=(part.shape[1], outputs))
            residuals = generator.normal(size=(len(part), outputs))
            values = operator.forward(coefficients, rows, columns)
            gathered = operator.adjoint(residuals, rows, columns)
            assert values.dtype == gathered.dtype == np.float64
            np.testing.assert_allclose(values, part @ coefficients, **near)
            np.testing.assert_allclose(gathered, part.T @ residuals, **near)
            if rows is not None:
                weights = generator.random(len(rows))
                gram = operator.gram(rows, weights, columns)
                np.testing.assert_allclose(gram, (part.T * weights) @ part, **near)
    np.testing.assert_array_equal(operator.cached, phases)
    turned = operator.with_elements(phases * phases.dtype.type(3))
    expected = features(phases * phases.dtype.type(3), **MAPS[kind]) / np.sqrt(WIDTH)
    ones = np.ones((operator.width, 1))
    np.testing.assert_allclose(turned.forward(ones), expected @ ones, **near)
    some = operator.restricted(SUBSETS["some"])
    np.testing.assert_allclose(some.forward(ones), matrix[SUBSETS["some"]] @ ones, **near)


def check_tall_products(device, monkeypatch, *, bits, kind):
    """More rows and directions than a tile of the kernels has, and no multiple of it."""
    monkeypatch.setattr(open_operator, "PRECISE", 0)
    phases, feature_map, matrix = phases_and_map(bits, 2501, 531, **MAPS[kind])
    operator = DeviceOperator(feature_map, phases, device)
    generator = np.random.default_rng(1)
    coefficients = generator.normal(size=(matrix.shape[1], 1))
    residuals = generator.normal(size=(len(matrix), 1))
    np.testing.assert_allclose(operator.forward(coefficients), matrix @ coefficients, atol=2e-5)
    np.testing.assert_allclose(operator.adjoint(residuals), matrix.T @ residuals, atol=2e-5)


def check_inverse(device, monkeypatch):
    """(κΦᵀWΦ + λI)⁻¹ against the explicit matrix; a hopeless one is made definite."""
    monkeypatch.setattr(open_operator, "PRECISE", 0)
    phases, feature_map, matrix = phases_and_map(8)
    operator = DeviceOperator(feature_map, phases, device)
    rows, weights = np.arange(0, ROWS, 2), np.linspace(0.1, 1, ROWS // 2)
    g = np.random.default_rng(2).normal(size=(WIDTH, 2))
    part = matrix[rows]
    hessian = 0.25 * (part.T * weights) @ part + 1e-2 * np.eye(WIDTH)
    apply = operator.inverse(rows, weights, 0.25, 1e-2)
    np.testing.assert_allclose(apply(g), np.linalg.solve(hessian, g), rtol=1e-4, atol=1e-5)
    few = operator.inverse(rows[:3], weights[:3], 0.25, 1e-18)
    assert np.isfinite(few(g)).all()


def check_losses(device):
    """Every loss of the package has its twin here, equal to rounding, far out as well."""
    assert set(DEVICE_LOSSES) == set(LOSSES)
    u = np.concatenate([np.linspace(-3, 3, 61), [-800.0, -45.0, 45.0, 800.0, 0.0, 1.0]])
    for name, loss in LOSSES.items():
        for y in (np.ones_like(u), -np.ones_like(u)):
            there = (torch.from_numpy(one).to(device) for one in (u, y))
            pair = tuple(there)
            for what in ("value", "derivative", "curvature"):
                found = getattr(DEVICE_LOSSES[name], what)(*pair).cpu().numpy()
                expected = getattr(loss, what)(u, y)
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-17)


def check_solver(device, monkeypatch, *, loss, outputs, sums=None):
    """The same optimum as on the processor, from the start and from an earlier solution."""
    monkeypatch.setattr(open_operator, "PRECISE", 0)
    phases, feature_map, matrix = phases_and_map(8, rows=400)
    generator = np.random.default_rng(3)
    targets = np.where(matrix @ generator.normal(size=(WIDTH, outputs)) > 0, 1.0, -1.0)
    weights = generator.random(400) + 0.5
    objective = RowObjective(targets, weights, LOSSES[loss], 1e-3, np.full(outputs, 0.1))
    options = {"tolerance": 1e-6, "sample": sample_rows(400, WIDTH, 0), "sums": sums}
    here = solve(OpenOperator(feature_map, 400, phases), objective, **options)
    there = solve(DeviceOperator(feature_map, phases, device), objective, **options)
    assert there.converged
    assert isinstance(there.predictions, np.ndarray)
    np.testing.assert_allclose(there.coefficients, here.coefficients, atol=2e-3)
    np.testing.assert_allclose(there.predictions, here.predictions, atol=2e-4)
    assert there.objective[-1] == pytest.approx(here.objective[-1], rel=1e-6)
    again = solve(DeviceOperator(feature_map, phases, device), objective, start=there, **options)
    assert again.iterations <= 1
    np.testing.assert_allclose(again.predictions, there.predictions, atol=1e-4)


def check_fourier_phases(device, *, bits, dtype=np.float64):
    """Local phases, bit for bit the processor's but where a sum lies on a rounding boundary."""
    generator = np.random.default_rng(4)
    block = generator.normal(size=(700, 9)).astype(dtype)
    ring = Ring(bits)
    feature_map = FourierMap(
        ring,
        generator.normal(size=(9, 33)),
        generator.integers(0, 2**bits, 33).astype(ring.dtype),
        33,
        centre=generator.normal(size=9),
    )
    part = LocalPart(feature_map, device)
    expected = feature_map.local(block.astype(np.float64))
    found = part.local(block)
    assert found.dtype == expected.dtype
    # In 32 bits every last bit of the sum shows.
    apart = (found - expected).view(np.dtype(f"int{bits}"))
    assert np.abs(apart.astype(np.int64)).max() <= 1
    assert np.count_nonzero(apart) <= (0 if bits == 8 else 25)
    into = np.zeros_like(found)
    assert part.local(block, into) is into
    np.testing.assert_array_equal(into, found)
    there = part.resident(block).cpu().numpy()
    np.testing.assert_array_equal(there.view(ring.dtype), found)
    block[5, 3] = np.nan
    assert part.resident(block) is None
    with pytest.raises(RingError, match="finite"):
        part.local(block)
    block[5, 3] = 1e30
    with pytest.raises(RingError, match="beyond double precision"):
        part.local(block)


def check_landmark_distances(device, *, bits):
    """Distances to landmarks, one step of the ring away at most, and kernel values from them."""
    generator = np.random.default_rng(5)
    block, landmarks = generator.normal(size=(300, 6)), generator.normal(size=(20, 6))
    feature_map = LandmarkMap(Ring(bits), landmarks, 1.5, 2, factor=np.linspace(0.5, 1, 6))
    expected = feature_map.local(block).astype(np.int64)
    found = LocalPart(feature_map, device).local(block).astype(np.int64)
    assert np.abs(found - expected).max() <= 1
    scaled = block * np.linspace(0.5, 1, 6)
    exact = -np.log(kernel(scaled, landmarks, 1.5)) / feature_map.unit
    near = exact < feature_map.most - 2
    assert near.any()
    np.testing.assert_allclose(found[near], exact[near], atol=0.51)
    with pytest.raises(RingError, match="finite"):
        LocalPart(feature_map, device).local(np.full((2, 6), np.inf))


def check_kernel_columns(device):
    """Kernel values that are kept as they are, multiplied as a plain matrix."""
    generator = np.random.default_rng(6)
    feature_map = LandmarkMap(Ring(16), generator.normal(size=(20, 3)), 1.0, 2)
    kept = feature_map.keep(feature_map.local(generator.normal(size=(50, 3))))
    operator = DeviceOperator(feature_map, kept, device)
    a, r = generator.normal(size=(20, 2)), generator.normal(size=(50, 2))
    np.testing.assert_allclose(operator.forward(a), kept @ a, atol=1e-6)
    np.testing.assert_allclose(operator.adjoint(r), kept.T @ r, atol=1e-5)
    np.testing.assert_array_equal(operator.cached, kept)


def check_ring_products(device, *, dtype, vectors, rows=123, width=77, fused=True):
    """Products in the ring, element by element those of plain integers."""
    generator = np.random.default_rng(7)
    top = np.iinfo(dtype).max
    values = generator.integers(0, top, (rows, width), dtype, endpoint=True)
    matrix = DeviceRingMatrix((rows, width), dtype, device, fused=fused)
    assert matrix.nbytes == values.nbytes
    for start in (50, 100, 0):  # in whatever order
        block = values[start : start + 50]
        with matrix.writing(slice(start, start + len(block))) as room:
            room[...] = block
    a = generator.integers(0, top, (width, vectors), dtype, endpoint=True)
    r = generator.integers(0, top, (rows, vectors), dtype, endpoint=True)
    chosen = np.array([5, 0, 9])

    def part(whole):
        return whole[chosen, 3:40]

    for kind, given, whole in (("forward", a, values), ("adjoint", r, values.T)):
        found = matrix.product(kind, given)
        assert found.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(found, whole @ given)
        assert matrix.sizes(kind) == whole.shape[::-1]
    np.testing.assert_array_equal(matrix.product("forward", a[3:40], part), part(values) @ a[3:40])
    np.testing.assert_array_equal(matrix.product("adjoint", r[:3], part), part(values).T @ r[:3])
    assert matrix.sizes("adjoint", part) == (3, 37)
