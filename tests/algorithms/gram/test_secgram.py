"""SecGram between parties: exact on whole numbers, bounded on real ones, tiles and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tests.conformance.uniformity import check_uniform
from tests.naive.dot_product import linear
from vertikal.algorithms.gram import secgram as program
from vertikal.algorithms.gram.secgram import (
    GramSettings,
    choose_ring,
    cross_gram,
    gram_matrix,
    tiles,
)
from vertikal.data.tables import Table
from vertikal.errors import InputError, RingError
from vertikal.estimators.simulation import Federation, simulate
from vertikal.mesh import RecordingMesh, Tape
from vertikal.party.party import digest
from vertikal.secure.keys.prg import fresh_key


def federation(blocks: dict[str, np.ndarray], **options) -> tuple[Federation, GramSettings]:
    names = tuple(blocks)
    agreed = GramSettings(parties=names, label_parties=names[:1], **options)
    tables = {
        name: Table(name, tuple(map(str, range(block.shape[1]))), block)
        for name, block in blocks.items()
    }
    secrets = {name: fresh_key() for name in names}
    return Federation(tables, names[:1], None, secrets, digest(agreed), "pads", 20.0), agreed


def cut(X: np.ndarray, parties: int) -> dict[str, np.ndarray]:
    runs = np.array_split(np.arange(X.shape[1]), parties)
    return {f"p{i}": X[:, run] for i, run in enumerate(runs)}


def run(X, parties=3, **options):
    """(shards by party, the leader's Gram)."""
    joined, agreed = federation(cut(X, parties), **options)
    outcome = simulate(joined, lambda party: gram_matrix(party, agreed))
    results = outcome.results
    assert all(results[name][1] is None for name in list(results)[1:])
    return {name: shard for name, (shard, _) in results.items()}, results["p0"][1], agreed


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 4), st.integers(1, 9), st.sampled_from([1, 50, 3000, 10**6]), st.data())
def test_whole_numbers_are_exact_in_the_smallest_ring(parties, rows, largest, data):
    seed = data.draw(st.integers(0, 10**6))
    X = np.random.default_rng(seed).integers(-largest, largest + 1, (rows, 5)).astype(float)
    _, gram, _ = run(X, parties)
    assert gram.values.tolist() == linear(X, X)
    assert gram.fixed_point.error == 0
    bound = sum(float((b**2).sum(axis=1).max()) for b in cut(X, parties).values())
    assert gram.fixed_point.bits == next(b for b in (16, 32, 64) if bound < 2 ** (b - 1))


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 20])
def test_tiles_put_together_are_the_matrix(rows, monkeypatch):
    monkeypatch.setattr(program, "tiles", lambda count: tiles(count, 4))
    X = np.random.default_rng(rows).integers(-9, 9, (rows, 6)).astype(float)
    _, gram, _ = run(X)
    assert np.array_equal(gram.values, X @ X.T)


def test_tiles_lie_on_and_above_the_diagonal():
    seen = np.zeros((10, 10), int)
    for i, j in tiles(10, 3):
        assert i.start <= j.start
        seen[i, j] += 1
        seen[j, i] += 0 if i == j else 1
    assert (seen == 1).all()


@pytest.mark.parametrize("bits", ["auto", 32, 64])
def test_real_numbers_keep_the_promised_bound(bits):
    X = np.random.default_rng(1).normal(size=(40, 9)) * [1, 1, 1, 100, 1, 1, 1e-3, 1, 1]
    _, gram, _ = run(X, 4, ring_bits=bits)
    error = np.abs(gram.values - X @ X.T).max()
    assert error <= gram.fixed_point.error
    # Fixed point is used well: the bound is small against the numbers themselves.
    assert gram.fixed_point.error < 1e-8 * (X**2).sum(axis=1).max()


def test_scaled_and_sparse_columns():
    X = np.random.default_rng(2).integers(0, 2, (30, 8)).astype(float)
    _, plain, _ = run(X)
    joined, agreed = federation({n: sparse.csr_array(b) for n, b in cut(X, 3).items()})
    outcome = simulate(joined, lambda party: gram_matrix(party, agreed))
    assert np.array_equal(outcome.results["p0"][1].values, plain.values)
    joined, agreed = federation(
        {n: sparse.csr_array(b) for n, b in cut(X, 3).items()}, scale="standard"
    )
    outcome = simulate(joined, lambda party: gram_matrix(party, agreed))
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    assert outcome.results["p0"][1].values == pytest.approx(standard @ standard.T, abs=1e-6)


@pytest.mark.parametrize("whole", [True, False])
def test_new_rows_against_training_rows(whole):
    generator = np.random.default_rng(3)
    X, Z = generator.normal(size=(20, 6)) * 5, generator.normal(size=(7, 6)) * 50
    if whole:
        X, Z = np.rint(X), np.rint(Z)
    shards, _, agreed = run(X)
    support = np.array([3, 11, 0])
    joined, _ = federation(cut(Z, 3))
    joined = replace(joined, settings=digest(agreed))
    outcome = simulate(
        joined,
        lambda party: cross_gram(
            party, shards[party.name], agreed, support if party.leads else None
        ),
    )
    cross = outcome.results["p0"]
    error = cross.fixed_point.error
    assert (error == 0) == whole
    assert np.abs(cross.values - Z @ X[support].T).max() <= error
    assert np.abs(cross.left - (Z**2).sum(axis=1)).max() <= error
    assert np.abs(cross.right - (X[support] ** 2).sum(axis=1)).max() <= error


def test_every_frame_of_a_product_is_uniform():
    X = np.ones((60, 6))
    joined, agreed = federation(cut(X, 3))
    tape = Tape()
    joined = replace(joined, wrap=lambda mesh: RecordingMesh(mesh, tape))
    outcome = simulate(joined, lambda party: gram_matrix(party, agreed))
    frames = [
        np.asarray(frame.payload()) for frame in tape if frame.header.tag.startswith("sum/kernel")
    ]
    assert [frame.size for frame in frames] == [60 * 61 // 2] * 2
    check_uniform(frames)
    learned = {d.name for d in outcome.ledger.disclosures()}
    assert {"kernel", "sizes", "ring"} <= learned


def test_bits_are_checked_before_anything_is_summed():
    X = np.ones((4, 6))
    X[2, 5] = 2
    joined, agreed = federation(cut(X, 3), binary=True)
    with pytest.raises(InputError, match=r"columns of party 'p2' must be 0 or 1 .* got 2"):
        simulate(joined, lambda party: gram_matrix(party, agreed))


def test_overflow_is_refused():
    with pytest.raises(RingError, match=r"inner products up to 40000 do not fit in 16 bits"):
        choose_ring(16, 40_000.0, True, 3, 10)
    assert choose_ring("auto", 40_000.0, True, 3, 10).bits == 32
    X = np.full((3, 3), 200.0)
    with pytest.raises(RingError, match="do not fit in 16 bits"):
        run(X, ring_bits=16)
    with pytest.raises(RingError, match=r"p\d: kernel: fixed point"):
        run(X * 1e12)


def test_settings_are_checked():
    with pytest.raises(InputError, match="ring_bits must be one of 'auto', 16, 32, 64, got 8"):
        GramSettings(parties=("a", "b"), label_parties=("a",), ring_bits=8)
