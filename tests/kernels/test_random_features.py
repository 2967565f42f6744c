"""FourierMap: local phases bit for bit, whatever the block, and what is decoded from them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from tests.naive.kernels import exact_kernel
from tests.naive.phases import cosines, features, round_phases
from vertikal.errors import RingError
from vertikal.kernels import feature_map as module
from vertikal.kernels.phase_loops import CompiledLoops, NumpyLoops
from vertikal.kernels.random_features import FourierMap, project
from vertikal.ring.integers import Ring

pytest.importorskip("numba")

BITS = [8, 16, 32]


def make_map(
    bits=8, columns=5, width=24, *, centre=None, total=None, loops=None, seed=0, **options
):
    generator = np.random.default_rng(seed)
    ring = Ring(bits)
    omega = generator.normal(size=(columns, width))
    offsets = generator.integers(0, 2**bits, width).astype(ring.dtype)
    options |= {} if loops is None else {"loops": loops}
    return (
        omega,
        offsets,
        FourierMap(ring, omega, offsets, total or width, centre=centre, **options),
    )


@pytest.mark.parametrize("loops", [NumpyLoops(), CompiledLoops()])
@pytest.mark.parametrize("bits", BITS)
def test_local_phases_bit_for_bit(bits, loops):
    X = np.random.default_rng(1).normal(size=(40, 5))
    omega, offsets, feature_map = make_map(bits, loops=loops)
    phases = feature_map.local(X)
    assert phases.dtype == Ring(bits).dtype
    assert phases.flags.c_contiguous
    plain = round_phases(X, omega.tolist(), offsets.tolist(), [0.0] * 5, bits)
    assert phases.tolist() == plain


@pytest.mark.parametrize("bits", BITS)
def test_a_row_has_the_same_phases_alone_and_in_a_block(bits):
    X = np.random.default_rng(1).normal(size=(50, 5))
    *_, feature_map = make_map(bits)
    whole = feature_map.local(X)
    for rows in ([7], [0, 49], [3, 1, 2, 3], list(range(10, 27))):
        np.testing.assert_array_equal(feature_map.local(X[rows]), whole[rows])


@pytest.mark.parametrize("loops", [NumpyLoops(), CompiledLoops()])
def test_many_wide_rows_are_worked_on_a_few_at_a_time(loops):
    X = np.random.default_rng(1).normal(size=(50, 5))
    *_, feature_map = make_map(width=1 << 15, loops=loops)
    whole = feature_map.local(X)
    for row in range(50):
        np.testing.assert_array_equal(feature_map.local(X[[row]]), whole[[row]])


def test_no_rows():
    *_, feature_map = make_map()
    assert feature_map.local(np.empty((0, 5))).shape == (0, 24)


@pytest.mark.parametrize("density", [0.0, 0.02, 0.5, 1.0])
def test_dense_and_sparse_rows_have_the_same_phases(density):
    generator = np.random.default_rng(2)
    X = generator.normal(size=(60, 40)) * (generator.random((60, 40)) < density)
    *_, feature_map = make_map(columns=40, centre=generator.normal(size=40))
    np.testing.assert_array_equal(feature_map.local(sparse.csr_array(X)), feature_map.local(X))


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("width", [7, 512, 1100])
@pytest.mark.parametrize(
    "form",
    [
        lambda cells: cells,
        lambda cells: np.hstack([np.ones((len(cells), 3)), cells])[:, 3:],
        np.asfortranarray,
        sparse.csr_array,
    ],
    ids=["in one piece", "of a wider table", "by columns", "sparse"],
)
def test_few_cells_a_row_give_the_phases_of_a_matrix_product(form, width, bits):
    """Rows of no cell up to eleven, more than are worked on together, and wider than the room."""
    generator = np.random.default_rng(5)
    cells = generator.normal(size=(150, 30)) * (np.arange(30) < np.arange(150)[:, None] % 12)
    cells = generator.permuted(cells, axis=1)
    maps = [make_map(bits, 30, width, loops=loops)[2] for loops in (CompiledLoops(), NumpyLoops())]
    found = CompiledLoops().project(
        form(cells), maps[0].steps, maps[0].offsets, np.empty((150, width), maps[0].ring.dtype)
    )
    assert found is True, "left to the matrix product"
    few, product = (feature_map.local(form(cells)) for feature_map in maps)
    # Sums in another order differ in their last bits, which a phase of 32 bits comes close to.
    apart = (few - product).view(f"int{bits}")
    assert np.abs(apart).max() <= (bits == 32)


@pytest.mark.parametrize("loops", [NumpyLoops(), CompiledLoops()])
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("density", [0.1, 1.0])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_phases_are_added_to_pads(form, density, bits, loops):
    generator = np.random.default_rng(6)
    X = form(generator.normal(size=(90, 40)) * (generator.random((90, 40)) < density))
    *_, feature_map = make_map(bits, columns=40, loops=loops)
    pads = generator.integers(0, 2**bits, (90, 24)).astype(feature_map.ring.dtype)
    out = pads.copy()
    feature_map.add_local(X, out)
    np.testing.assert_array_equal(out, pads + feature_map.local(X))


def test_rows_with_few_entries_are_not_made_dense(monkeypatch):
    """A block of 60 by 40 has 2,400 cells, however few of them a sparse one keeps."""
    generator = np.random.default_rng(2)
    thin, thick = (
        sparse.csr_array(np.where(generator.random((60, 40)) < density, 1.5, 0.0))
        for density in (0.02, 0.5)
    )
    directions = generator.normal(size=(40, 3))
    expected = thin.toarray() @ directions
    made = []
    original = sparse.csr_array.toarray
    monkeypatch.setattr(
        sparse.csr_array, "toarray", lambda self: (made.append(self.nnz), original(self))[1]
    )
    np.testing.assert_allclose(project(thin, directions), expected)
    assert made == []
    project(thick, directions)
    assert made == [thick.nnz]


@pytest.mark.parametrize("bits", BITS)
def test_a_centre_is_folded_into_the_offsets(bits):
    generator = np.random.default_rng(3)
    X, centre = generator.normal(5, 1, (40, 5)), generator.normal(5, 1, 5)
    _, _, centred = make_map(bits, centre=centre)
    _, _, plain = make_map(bits)
    np.testing.assert_array_equal(centred.local(X), plain.local(X - centre))
    assert (centred.local(X) != plain.local(X)).any()


def test_a_distant_centre_keeps_its_precision():
    generator = np.random.default_rng(4)
    X = generator.normal(size=(40, 5))
    centre = np.full(5, 1e6)
    _, _, plain = make_map()
    _, _, centred = make_map(centre=centre)
    np.testing.assert_array_equal(centred.local(X + centre), plain.local((X + centre) - centre))


@pytest.mark.parametrize("loops", [NumpyLoops(), CompiledLoops()])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.filterwarnings("ignore:invalid value encountered in matmul")
def test_cells_that_are_not_finite_are_refused(loops, bad):
    X = np.ones((3, 5))
    X[1, 2] = bad
    *_, feature_map = make_map(loops=loops)
    with pytest.raises(
        RingError, match=r"^phases: projections must be finite, got NaN or infinity$"
    ):
        feature_map.local(X)


@pytest.mark.parametrize("loops", [NumpyLoops(), CompiledLoops()])
@pytest.mark.parametrize("factor", [1e16, -1e200])
def test_projections_beyond_double_precision_are_refused_with_a_remedy(loops, factor):
    *_, feature_map = make_map(loops=loops)
    with pytest.raises(
        RingError,
        match=r"^phases: a projection of .* is beyond double precision .*"
        r"raise the bandwidth or scale the columns$",
    ):
        feature_map.local(np.full((3, 5), factor))


def test_the_offset_that_tips_the_scale_is_no_nan():
    # The projection is within range, its sum with the offset is not: still "too large", not "NaN".
    ring = Ring(8)
    edge = (2.0**51 - 10) / ring.steps
    feature_map = FourierMap(ring, np.ones((1, 1)), np.array([250], np.uint8), 1)
    with pytest.raises(RingError, match="beyond double precision"):
        feature_map.local(np.array([[edge]]))


@pytest.mark.parametrize("bits", BITS)
def test_decoded_features(bits):
    *_, feature_map = make_map(bits, total=100)
    phases = feature_map.local(np.random.default_rng(1).normal(size=(20, 5)))
    plain = cosines(phases) / math.sqrt(100)
    np.testing.assert_allclose(feature_map.decode(phases, np.float64), plain, atol=1e-15)
    single = feature_map.decode(phases)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, plain, atol=1e-7)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("rows", [0, 1, 700])
@pytest.mark.parametrize("columns", [slice(None), slice(3, 17)])
def test_forward_and_adjoint_are_products_with_the_features(outputs, rows, columns):
    generator = np.random.default_rng(6)
    *_, feature_map = make_map()
    phases = feature_map.local(generator.normal(size=(rows, 5)))[:, columns]
    matrix = cosines(phases) / math.sqrt(24)
    coefficients = generator.normal(size=(matrix.shape[1], outputs))
    residuals = generator.normal(size=(rows, outputs))
    np.testing.assert_allclose(
        feature_map.forward(phases, coefficients), matrix @ coefficients, atol=5e-6
    )
    np.testing.assert_allclose(
        feature_map.adjoint(phases, residuals), matrix.T @ residuals, atol=5e-5
    )


KINDS = [
    {"functions": "pair"},
    {"functions": "cosine", "harmonics": (1, 2, 4)},
    {"functions": "pair", "harmonics": (1, 3)},
    {"functions": "pair", "harmonics": (2,)},
]


@pytest.mark.parametrize("loops", [NumpyLoops(), CompiledLoops()])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bits", BITS)
def test_several_features_of_each_phase(bits, kind, loops):
    *_, feature_map = make_map(bits, total=100, loops=loops, **kind)
    phases = feature_map.local(np.random.default_rng(1).normal(size=(20, 5)))
    plain = features(phases, **kind) / math.sqrt(100)
    assert (feature_map.elements, feature_map.width) == (24, plain.shape[1])
    assert phases.shape == (20, 24)
    np.testing.assert_allclose(feature_map.decode(phases, np.float64), plain, atol=1e-15)
    single = feature_map.decode(phases)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, plain, atol=1e-7)


@pytest.mark.parametrize("loops", [NumpyLoops(), CompiledLoops()])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("rows", [0, 1, 700])
@pytest.mark.parametrize("decoded", [1 << 22, 1000])
def test_products_with_several_features_of_each_phase(
    loops, kind, outputs, rows, decoded, monkeypatch
):
    monkeypatch.setattr(module, "DECODED", decoded)
    generator = np.random.default_rng(6)
    *_, feature_map = make_map(loops=loops, **kind)
    phases = feature_map.local(generator.normal(size=(rows, 5)))
    matrix = features(phases, **kind) / math.sqrt(24)
    coefficients = generator.normal(size=(matrix.shape[1], outputs))
    residuals = generator.normal(size=(rows, outputs))
    values = feature_map.forward(phases, coefficients)
    gathered = feature_map.adjoint(phases, residuals)
    np.testing.assert_allclose(values, matrix @ coefficients, atol=1e-5)
    np.testing.assert_allclose(gathered, matrix.T @ residuals, atol=5e-5)
    # The adjoint identity ⟨Φa, r⟩ = ⟨a, Φᵀr⟩.
    left, right = np.sum(values * residuals), np.sum(coefficients * gathered)
    assert left == pytest.approx(right, abs=1e-3)


@pytest.mark.parametrize("bits", BITS)
def test_a_harmonic_has_the_phases_of_the_multiple_of_its_directions(bits):
    # Whole steps are rounded nowhere, so multiples in the ring are the ring's own phases.
    generator, ring = np.random.default_rng(7), Ring(bits)
    omega = generator.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (5, 24)) / ring.steps
    offsets = generator.integers(0, 2**bits, 24).astype(ring.dtype)
    X = generator.integers(-9, 9, (40, 5)).astype(float)
    for kind in ("cosine", "pair"):
        once = FourierMap(ring, omega, offsets, 24, functions=kind, harmonics=(3,))
        multiple = FourierMap(ring, 3 * omega, 3 * offsets, 24, functions=kind)
        np.testing.assert_array_equal(
            once.decode(once.local(X), np.float64), multiple.decode(multiple.local(X), np.float64)
        )


def kernel_errors(X, exact, draws, width, **kind):
    """Mean squared error of inner products of features, over draws and pairs of rows."""
    errors = []
    for seed in range(draws):
        *_, feature_map = make_map(16, width=width, seed=seed, **kind)
        phi = feature_map.decode(feature_map.local(X), np.float64)
        errors.append(np.square(phi @ phi.T - exact)[np.triu_indices(len(X), 1)].mean())
    return np.mean(errors)


def test_pairs_have_at_most_half_the_variance_of_as_many_cosines():
    # Of D directions: cosines (2 + k(2x, 2z) − 2k²)/2D, pairs (1 + k(2x, 2z) − 2k²)/2D.
    X = np.random.default_rng(8).normal(size=(12, 5))
    exact, doubled = (exact_kernel("gaussian", factor * X, factor * X, 1.0) for factor in (1, 2))
    upper = np.triu_indices(12, 1)
    cosine = kernel_errors(X, exact, 200, 50)
    pair = kernel_errors(X, exact, 200, 50, functions="pair")
    assert cosine == pytest.approx((2 + doubled - 2 * exact**2)[upper].mean() / 100, rel=0.1)
    assert pair == pytest.approx((1 + doubled - 2 * exact**2)[upper].mean() / 100, rel=0.1)
    assert pair < 0.55 * cosine


@pytest.mark.parametrize("functions", ["cosine", "pair"])
def test_harmonics_make_the_mean_of_narrower_kernels(functions):
    X = 0.5 * np.random.default_rng(9).normal(size=(10, 5))
    mean = np.mean([exact_kernel("gaussian", X, X, 1 / h) for h in (1, 2, 3)], axis=0)
    error = kernel_errors(X, mean, 5, 20_000, functions=functions, harmonics=(1, 2, 3))
    assert math.sqrt(error) < 0.01
    assert math.sqrt(np.square(exact_kernel("gaussian", X, X, 1) - mean).mean()) > 0.1
