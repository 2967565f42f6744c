"""Oblivious tables: what was stored comes out, sums decode to sums, anything else is noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.uniformity import check_uniform
from tests.naive import oblivious_table as naive
from vertikal.errors import SecrecyError
from vertikal.secure.keys import prg
from vertikal.secure.psi.oblivious_table import SHARED, decode, encode, key_words, slots_for


def words_of(names, domain=b"d"):
    return key_words([str(name).encode() for name in names], domain)


def values_of(count):
    return prg.uniform_elements(prg.fresh_key(), (count, 2), np.uint64)


def left_over(words, slots):
    """Count the keys that peeling leaves to the shared slots, if these could not help."""
    words = words.copy()
    words[:, 3] = 0
    try:
        encode(words, values_of(len(words)), slots)
    except SecrecyError as error:
        return int(str(error).split()[0])
    return 0


@given(st.sets(st.integers(), min_size=1, max_size=60), st.sets(st.integers(), max_size=60))
def test_what_is_stored_is_read(stored, others):
    words, values = words_of(stored), values_of(len(stored))
    table = encode(words, values, slots_for(max(len(stored), len(others))))
    assert (decode(table, words) == values).all()
    assert naive.decode(table, words) == values.tolist()
    strange = words_of(others - stored)
    assert decode(table, strange).tolist() == naive.decode(table, strange)


def test_many_keys_in_more_than_one_block():
    words, values = words_of(range(10_000)), values_of(10_000)
    table = encode(words, values, slots_for(10_000))
    assert (decode(table, words) == values).all()
    assert len(table) < 1.43 * 10_000


def test_a_sum_of_tables_decodes_to_sums_where_all_have_the_key():
    slots = slots_for(60)
    values = {name: dict(enumerate(values_of(100))) for name in "abc"}
    sets = {"a": range(60), "b": range(20, 80), "c": [*range(40, 60), *range(80, 100)]}
    total = sum(
        encode(words_of(keys), np.array([values[name][k] for k in keys]), slots)
        for name, keys in sets.items()
    )
    expected = sum(np.array([values[name][k] for k in range(100)]) for name in "abc")
    agree = (decode(total, words_of(range(100))) == expected).all(axis=1)
    assert np.flatnonzero(agree).tolist() == list(range(40, 60))


def test_a_table_looks_the_same_whatever_keys_it_has():
    slots = slots_for(500)
    some = [encode(words_of(range(500)), values_of(500), slots) for _ in range(3)]
    few = [encode(words_of(range(3)), values_of(3), slots) for _ in range(3)]
    check_uniform([*some, *few])
    # A key that was not stored reads noise, and other noise each time.
    check_uniform([decode(table, words_of(range(500, 1000))) for table in some])


def test_keys_that_share_all_their_slots_are_solved_for():
    """Equal in the first three words: peeling gets nowhere, the shared slots tell them apart."""
    words = words_of(range(30)).copy()
    words[:12, :3] = words[0, :3]
    values, slots = values_of(30), slots_for(30)
    assert left_over(words, slots) == 12
    table = encode(words, values, slots)
    assert (decode(table, words) == values).all()
    assert naive.decode(table, words) == values.tolist()
    check_uniform([encode(words, values_of(30), slots) for _ in range(3)])


def test_keys_that_no_table_can_tell_apart_are_refused():
    words = words_of(range(3)).copy()
    words[1] = words[0]
    with pytest.raises(SecrecyError, match=r"2 ids share so many slots .* run the alignment again"):
        encode(words, values_of(3), slots_for(3))


def test_few_keys_are_ever_left_over():
    """The keys that are left for the shared slots are far fewer than these slots."""
    left = [
        left_over(words_of(range(n), str(i).encode()), slots_for(n))
        for n in (1, 10, 100, 300)
        for i in range(100)
    ]
    assert max(left) < SHARED - 40
