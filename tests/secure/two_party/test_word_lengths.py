"""Lengths of words: nothing that is rounded off, or that a key adds, is large beside the rest."""

from __future__ import annotations

import math

import pytest

from tests.secure.two_party.lattice.test_key_switching import switching_errors
from vertikal.secure.two_party.ciphertext_link import EXACT_BITS, proof_bits
from vertikal.secure.two_party.encrypted_product import tile_columns
from vertikal.secure.two_party.lattice.key_switching import DIGITS
from vertikal.secure.two_party.lattice.parameters import DEVIATION, FEATURES, PRODUCTS
from vertikal.secure.two_party.vector_writing import MOST_BITS
from vertikal.secure.two_party.word_lengths import WordLengths, gathered_answers


@pytest.mark.parametrize(
    ("parameters", "gathered"),
    [(FEATURES, 1), (FEATURES, gathered_answers(10**6)), (PRODUCTS, 1)],
    ids=["features", "gathered", "products"],
)
def test_proven_public_keys_leave_words_without_their_errors(parameters, gathered):
    bits, degree = proof_bits(parameters.modulus, gathered), parameters.degree
    bound = parameters.modulus / 2 ** (bits + 1)
    # An honest key's own noise and what rounding adds are below the bound by eight deviations.
    noise = [DEVIATION * math.sqrt(2 * degree * 2 / 3)]
    noise.append(parameters.modulus / 2**EXACT_BITS * math.sqrt((degree * 2 / 3 + 1) / 12))
    if gathered > 1:
        noise += [noise[0], *switching_errors(gathered)]
    assert 8 * math.hypot(*noise) < bound
    if parameters is FEATURES:
        # Words are rounded where A adds no more than a part of their last bit: a sixteenth, and
        # with a switching key an eighth in tables of up to 65,536 rows.
        largest = {1: {10**7: 2**-4}, 4: {32_561: 2**-3, 10**7: 1}}[gathered]
        for rows, part in largest.items():
            assert bound <= part * parameters.modulus / 2 ** WordLengths(rows).shared
    else:
        assert bound < 2**-30 * parameters.modulus / 2**MOST_BITS


def test_gathering_pays_where_it_is_done():
    """A switching key is smaller than what it saves, and small beside it for a large table."""
    key = 4 * 4 * DIGITS * FEATURES.degree * 48 / 8
    for polynomials, part in ((1024, 0.3), (32_561, 0.01)):
        saved = 0.75 * polynomials * FEATURES.degree * WordLengths(polynomials).hidden / 8
        assert gathered_answers(polynomials) == 4
        assert key < part * saved
    assert gathered_answers(1023) == gathered_answers(1) == 1


@pytest.mark.parametrize(
    ("rows", "columns", "across"),
    [(1, 1024, 512), (300, 1024, 128), (32_561, 1024, 8), (10**6, 1024, 8), (32_561, 4096, 32)],
)
def test_tiles_are_those_with_the_fewest_ciphertexts(rows, columns, across):
    assert tile_columns(rows, columns, 4096) == across
    counts = {k: columns // k + -(-rows // (4096 // k)) for k in (8, 16, 32, 64, 128, 256, 512)}
    assert counts[across] == min(counts.values())


@pytest.mark.parametrize(
    ("rows", "room"), [(1, 14), (1024, 14), (1025, 15), (32_561, 17), (65_537, 18), (10**9, 20)]
)
def test_words_have_room_for_sums_over_rows(rows, room):
    lengths = WordLengths(rows)
    assert lengths.room == room
    assert lengths.shared + lengths.unit == lengths.matrix_bits + room == 32
    if rows <= 1 << 22:
        # Of rounding each entry of a vector, as a part of full scale.
        assert math.sqrt(rows / 12) / 32 / 2 ** (room - 1) < 2**-14.7
    # The label party's share of the modulus leaves errors of the encryption below 0.4 %.
    left = FEATURES.modulus / 2 ** (lengths.encrypted - 11)
    assert DEVIATION * math.sqrt(FEATURES.degree / 2) / left < 0.004


@pytest.mark.parametrize("opened", [6, 12, 14])
def test_what_is_rounded_off_a_product_is_small_beside_its_noise(opened):
    noise, degree = 2.0**-opened / math.sqrt(12), PRODUCTS.degree
    for rows in (1000, 32_561, 10**6):
        lengths = WordLengths(rows)
        across = tile_columns(rows, 1024, degree)
        for tiles in (1024 // across, -(-rows * across // degree)):
            asked = 2.0 ** -lengths.asked(opened, tiles) * 2**lengths.shared
            asked *= math.sqrt(tiles * degree) / 6
            told = 2.0 ** -lengths.answered(opened) * math.sqrt(degree * 2 / 3 / 12)
            assert asked < noise * (0.3 if rows < 10**6 else 1)
            assert told < 0.3 * noise
