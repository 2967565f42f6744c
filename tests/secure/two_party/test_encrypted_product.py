"""Tiles and their products against schoolbook polynomials, and the example of the page."""

from __future__ import annotations

import numpy as np

from tests.conformance.running import run
from tests.naive.two_party import over_columns, over_rows, product, tile
from tests.secure.two_party.two_party_run import ROLES
from vertikal.mesh import local_meshes
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree
from vertikal.secure.two_party.encrypted_product import EncryptedProduct
from vertikal.secure.two_party.word_lengths import WordLengths

M = 2**32
BITS = {"forward": 6, "adjoint": 14}


def test_a_tile_serves_columns_and_rows():
    generator = np.random.default_rng(0)
    entries = generator.integers(0, M, (4, 8)).tolist()
    v, r = generator.integers(0, M, 8).tolist(), generator.integers(0, M, 4).tolist()
    forward = product(over_columns(v, 32), tile(entries), M)
    assert forward[7::8] == [sum(a * b for a, b in zip(row, v, strict=True)) % M for row in entries]
    adjoint = product(over_rows(r, 8), tile(entries), M)
    columns = list(zip(*entries, strict=True))
    assert adjoint[:8][::-1] == [
        sum(a * b for a, b in zip(column, r, strict=True)) % M for column in columns
    ]


def test_the_example_of_the_page():
    polynomial = tile([[1, 2], [3, 4]])
    assert polynomial == [2, 1, 4, 3]
    found = product(over_columns([5, 6], 4), polynomial, M)
    assert [x - M if x > M // 2 else x for x in found] == [-8, 17, 26, 39]


def test_products_are_exact_but_for_the_bits_that_are_left_off():
    rows, columns = 1100, 1024
    generator = np.random.default_rng(1)
    shares = {
        name: generator.integers(0, M, (rows, columns), dtype=np.uint32) for name in ("ada", "bob")
    }
    unit = np.uint32(WordLengths(rows).unit)
    shares["bob"] = shares["bob"] >> unit << unit
    vectors = {
        "forward": generator.integers(0, M, (columns, 2), dtype=np.uint32),
        "adjoint": generator.integers(0, M, (rows, 1), dtype=np.uint32),
    }

    def work(mesh):
        keys = agree(mesh, prg.fresh_key(), job="j", version="1", settings_digest="s", rows=rows)
        part = EncryptedProduct(mesh, keys, ROLES, rows, columns)
        label_party = mesh.me == ROLES.label_party
        for start in range(0, rows, 300):
            block = shares[mesh.me][start : start + 300]
            (part.add_as_label_party if label_party else part.add_as_helper)(block)
        found = {}
        for kind, vector in vectors.items():
            if label_party:
                found[kind] = part.ask(kind, vector, BITS[kind])
            else:
                part.answer(kind, vector.shape[1], BITS[kind])
        return found, part.nbytes

    outcome = run(local_meshes(("ada", "bob"), 20.0), work).unwrap()
    matrix = shares["ada"] + shares["bob"]
    exact = {"forward": matrix @ vectors["forward"], "adjoint": matrix.T @ vectors["adjoint"]}
    found, kept = outcome["ada"]
    for kind, product_ in found.items():
        error = (product_ - exact[kind]).view(np.int32) / 2.0**31
        # Noise is uniform in ±2^-b of full scale; what is rounded off deviates by 2^-(b + 3).
        assert np.abs(error).max() < 2 * 2.0 ** -BITS[kind]
        # Words that were all rounded down would add up, over a million numbers of one sign.
        assert abs(error.mean()) < 0.5 * 2.0 ** -BITS[kind]
        assert 0.95 < error.std() * np.sqrt(3) * 2 ** BITS[kind] < 1.1
    assert kept == rows * columns * 4
    assert outcome["bob"][1] >= 3 * kept
