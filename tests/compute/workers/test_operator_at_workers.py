"""Φ, ring matrices and tables at real workers of Ray, against the same in this process."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from scipy import sparse

from tests.compute.workers.killing import kill
from vertikal.compute import open_operator
from vertikal.compute.open_operator import OpenOperator
from vertikal.compute.workers.sharded_table import ShardedTable
from vertikal.compute.workers.spread_operator import SpreadOperator, SpreadStore
from vertikal.compute.workers.spread_place import SpreadPlace
from vertikal.compute.workers.spread_ring_matrix import SpreadRingMatrix
from vertikal.data.preparation import learn_preparation
from vertikal.data.scaling import learn_scaling
from vertikal.data.sources import open_source
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.kernels.random_features import FourierMap
from vertikal.losses.pointwise import LOSSES
from vertikal.ring.integers import Ring
from vertikal.ring.ring_matrix import RingMatrix
from vertikal.secure.sums.pads import SumPads
from vertikal.solvers.lbfgs import sample_rows, solve
from vertikal.solvers.objective import RowObjective

ROWS, WIDTH = 5000, 24
SOME = np.array([3, 4999, 3, 2100, 4097])
FEW = np.arange(30)
NEAR = {"rtol": 1e-5, "atol": 1e-5}


def operators(group, precise):
    """The same Φ at workers and in this process."""
    generator = np.random.default_rng(0)
    feature_map = FourierMap(Ring(8), generator.normal(size=(5, WIDTH)), np.zeros(WIDTH), WIDTH)
    phases = generator.integers(0, 256, (ROWS, WIDTH), np.uint8)
    store = SpreadStore(group, feature_map, ROWS)
    for start in range(0, ROWS, 1111):
        part = slice(start, min(start + 1111, ROWS))
        store.add(part, phases[part])
    return SpreadOperator(feature_map, store), OpenOperator(
        feature_map, ROWS, phases, precise=precise
    )


@pytest.mark.parametrize("precise", [True, False])
def test_products_and_a_fit_are_those_of_this_process(group, notes, monkeypatch, precise):
    if not precise:
        monkeypatch.setattr(open_operator, "PRECISE", 0)
    there, here = operators(group, precise)
    np.testing.assert_array_equal(there.cached, here.cached)
    generator = np.random.default_rng(1)
    for rows in (None, SOME, np.array([], int)):
        for columns in (slice(None), slice(3, 9)):
            wanted = range(WIDTH)[columns]
            coefficients = generator.normal(size=(len(wanted), 2))
            residuals = generator.normal(size=(ROWS if rows is None else len(rows), 2))
            np.testing.assert_allclose(
                there.forward(coefficients, rows, columns),
                here.forward(coefficients, rows, columns),
                **NEAR,
            )
            np.testing.assert_allclose(
                there.adjoint(residuals, rows, columns),
                here.adjoint(residuals, rows, columns),
                **NEAR,
            )
    sample, weights = sample_rows(ROWS, WIDTH, 0), np.full(ROWS, 0.5)
    np.testing.assert_allclose(
        there.gram(sample, weights[sample]), here.gram(sample, weights[sample]), **NEAR
    )
    objective = RowObjective(
        np.where(generator.random((ROWS, 1)) > 0.4, 1.0, -1.0),
        generator.random(ROWS),
        LOSSES["logistic"],
        1e-4,
        np.array([0.1]),
    )
    plain = solve(here, objective, tolerance=1e-3, sample=FEW)
    spread = solve(there, objective, tolerance=1e-3, sample=FEW)
    assert spread.iterations == plain.iterations > 3
    np.testing.assert_allclose(spread.coefficients, plain.coefficients, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(spread.predictions, plain.predictions, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(spread.objective, plain.objective, rtol=1e-6)
    # A worker is killed while a solver works, which goes on and takes the very same steps.
    reports = []

    def report(solution):
        reports.append(solution.iterations)
        if len(reports) == 3:
            kill(group, 1)

    again = solve(there, objective, tolerance=1e-3, sample=FEW, report=report)
    np.testing.assert_array_equal(again.coefficients, spread.coefficients)
    np.testing.assert_array_equal(again.predictions, spread.predictions)
    assert group.lost == 1
    lost = [note for note in notes if "was lost" in note]
    assert len(lost) == 1
    assert lost[0].startswith("worker 2 of 2 of a on ")


def test_ring_products_are_exact(group):
    generator = np.random.default_rng(2)
    shape = (ROWS, 7)
    values = generator.integers(0, 2**64, shape, np.uint64)
    there, here = SpreadRingMatrix(shape, np.uint64, group), RingMatrix(shape, np.uint64)
    for start in reversed(range(0, ROWS, 700)):  # in whatever order
        rows = slice(start, min(start + 700, ROWS))
        for matrix in (there, here):
            with matrix.writing(rows) as room:
                room[:] = values[rows]
    columns = slice(2, 5)
    for kind in ("forward", "adjoint"):
        for part in (None, lambda m: m[SOME, columns], lambda m: m[:, columns]):
            assert there.sizes(kind, part) == here.sizes(kind, part)
            vectors = generator.integers(0, 2**64, (here.sizes(kind, part)[0], 3), np.uint64)
            expected = here.product(kind, vectors, part)
            np.testing.assert_array_equal(there.product(kind, vectors, part), expected)
            if kind == "adjoint" and part is None:
                kill(group, 0)
                np.testing.assert_array_equal(there.product(kind, vectors, part), expected)
    assert there.nbytes == here.nbytes


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_tables_and_masked_phases(group, kind):
    generator = np.random.default_rng(3)
    cells = generator.normal(size=(ROWS, 5)) * (generator.random((ROWS, 5)) < 0.7)
    values = sparse.csr_array(cells) if kind == "sparse" else cells
    table = Table("a", tuple("vwxyz"), values)
    place = SpreadPlace(group)
    spread = place.table(table)
    assert isinstance(spread, ShardedTable)
    assert (spread.rows, spread.width, spread.is_sparse) == (ROWS, 5, kind == "sparse")
    for rows in (slice(1000, 4500), SOME, slice(None)):
        found, expected = spread.block(rows), table.block(rows)
        if kind == "sparse":
            found, expected = found.toarray(), expected.toarray()
        np.testing.assert_array_equal(found, expected)
    assert learn_scaling(spread, "standard") == learn_scaling(table, "standard")
    feature_map = FourierMap(Ring(8), generator.normal(size=(5, 9)), np.zeros(9), 9)
    pads = SumPads(((bytes(32), 5, 1), (bytes([1] * 32), 0, -1)))
    for wanted in (np.arange(4000, 4900), np.arange(1500, 2500), np.arange(2000, 4600), SOME):
        expected = feature_map.local(table.block(wanted))
        plain = place.begin_local(feature_map, spread, wanted)()
        np.testing.assert_array_equal(plain, expected)
        pads(expected)
        masked = place.begin_local(feature_map, spread, wanted, pads)
        if wanted[0] == 1500:
            # What is computed again carries the same pads: the bytes are the same.
            kill(group, 0)
        np.testing.assert_array_equal(masked(), expected)


def test_errors_of_a_worker_are_raised_as_here(group):
    table = Table("a", ("x",), np.full((ROWS, 1), 1e300))
    place = SpreadPlace(group)
    spread = place.table(table)
    feature_map = FourierMap(Ring(8), np.ones((1, 4)), np.zeros(4), 4)
    with pytest.raises(InputError) as here:
        feature_map.local(table.block(slice(0, 10)))
    with pytest.raises(InputError) as there:
        place.begin_local(feature_map, spread, np.arange(10))()
    assert str(there.value) == str(here.value)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_workers_read_their_rows_for_themselves(group, tmp_path, kind):
    generator = np.random.default_rng(4)
    size = generator.normal(size=6000)
    size[::7] = np.nan
    town = generator.choice(["Ulm", "Bern", "Graz"], 6000)
    table = pa.table({"id": np.arange(6000), "size": size, "town": town})
    path = tmp_path / f"people.{kind}"
    csv.write_csv(table, path) if kind == "csv" else parquet.write_table(table, path)
    source = open_source("a", path.name, id="id", folder=tmp_path)
    rows = generator.permutation(6000)[:ROWS]
    options = {"rows": rows, "missing": "indicator"}
    expected, here = learn_preparation(source, ("size", "town"), **options)

    def apply(preparation, source, rows):
        return ShardedTable.read(group, preparation, source, rows)

    found, there = learn_preparation(source, ("size", "town"), **options, apply=apply)
    assert found == expected
    assert isinstance(there.table, ShardedTable)
    assert there.filled == here.filled
    assert there.filled["size"] > 0
    kill(group, 1)
    np.testing.assert_array_equal(there.table.block(slice(None)), here.table.block(slice(None)))


def test_a_source_that_a_worker_cannot_read_is_named(group, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("id,size\n" + "\n".join(f"{i},{i % 7}" for i in range(5000)))
    source = open_source("a", path.name, id="id", folder=tmp_path)
    preparation, _ = learn_preparation(source, ("size",))
    path.unlink()
    with pytest.raises(InputError, match=r"people\.csv"):
        ShardedTable.read(group, preparation, source, np.arange(5000))


def test_workers_keep_no_more_than_a_solver_needs(group):
    there, _ = operators(group, True)
    objective = RowObjective(
        np.where(np.arange(ROWS)[:, None] % 3, 1.0, -1.0),
        np.ones(ROWS),
        LOSSES["square"],
        1e-4,
        np.zeros(1),
    )
    held = []

    def of_solvers():
        sizes = [one for found in group.ask_all("sizes") for one in found.items()]
        return sum(size for name, size in sizes if name.startswith("solver"))

    def report(solution):
        held.append(of_solvers())

    for _ in range(2):
        assert solve(there, objective, tolerance=1e-9, sample=FEW, report=report).iterations > 5
    assert max(held) <= 4 * 8 * ROWS
    gc.collect()
    # The next change lets workers let go, and whoever takes one's place is not told of it.
    SpreadStore(group, FourierMap(Ring(8), np.zeros((1, 2)), np.zeros(2), 2), 10)
    kill(group, 0)
    assert of_solvers() == 0
