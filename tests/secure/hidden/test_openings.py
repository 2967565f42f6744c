"""The helper's count of the products that it opens, against equations counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertikal.errors import PassesUsedUp, SecrecyError
from vertikal.secure.hidden.openings import Limits, OpenedBits, Openings

ALL = (0, 8)


class Kept:
    """A tally in memory."""

    def __init__(self):
        self.list = []

    def entries(self):
        return list(self.list)

    def add(self, entry):
        self.list.append(entry)


def openings(
    rows=40, passes=1000, fewest=2, tally=None, gradients=1000, gradient_bits=8, directions=None
):
    limits = Limits(passes, fewest, gradients, value_bits=6, gradient_bits=gradient_bits)
    return Openings("hal", "ada", rows, limits, tally, directions)


def refused(count, *product):
    with pytest.raises(PassesUsedUp, match="so many gradients over the same rows"):
        count.book("adjoint", *product)


def test_gradients_of_all_rows_up_to_two_bits_for_each():
    count = openings(rows=40)
    for _ in range(8):
        count.book("adjoint", 1, ALL, None)
    count.book("adjoint", 2, ALL, None)
    refused(count, 1, ALL, None)


@pytest.mark.parametrize(("bits", "allowed"), [(8, 10), (12, 6), (28, 2)])
def test_bits_are_counted_not_products(bits, allowed):
    count = openings(rows=40, gradient_bits=bits)
    for _ in range(allowed):
        count.book("adjoint", 1, ALL, None)
    refused(count, 1, ALL, None)


def test_gradients_about_a_direction_as_many_as_were_agreed():
    count = openings(rows=400, gradients=3)
    for columns in ((0, 4), (4, 8)):
        count.book("adjoint", 2, columns, None)
        count.book("adjoint", 1, columns, np.arange(16))
    with pytest.raises(PassesUsedUp, match="gradient 4 about a direction; 3 were agreed"):
        count.book("adjoint", 1, (0, 4), np.arange(16, 32))


def test_what_may_be_opened_at_most():
    limits = Limits(256, 8, most_gradients=209, value_bits=6, gradient_bits=12)
    assert limits.at_most() == OpenedBits(256, 6, 209, 12)
    assert limits.at_most(30_000) == limits.at_most()
    assert limits.at_most().about_a_row == 1536
    assert limits.at_most().about_a_direction == 2508
    assert limits.at_most(600).gradients == limits.at_most(600).rows_at_risk == 100


def test_gradients_of_one_batch_up_to_two_bits_for_each_of_its_rows():
    count, batch = openings(rows=100), np.arange(16)
    for _ in range(4):
        count.book("adjoint", 1, ALL, batch)
    count.book("adjoint", 1, ALL, np.arange(16, 32))
    refused(count, 1, ALL, batch)
    refused(openings(), 5, ALL, batch)


def test_columns_are_counted_apart_unless_they_overlap():
    count, batch = openings(), np.arange(16)
    for columns in ((0, 4), (4, 8)):
        for _ in range(4):
            count.book("adjoint", 1, columns, batch)
    refused(count, 1, (3, 5), batch)
    refused(count, 1, ALL, None)


def test_cosines_and_sines_of_a_direction_are_counted_together():
    count = openings(rows=40, directions=4)
    for _ in range(5):
        count.book("adjoint", 1, ALL, None)
    refused(count, 1, ALL, None)
    # Ten numbers of eight bits about 40 rows, whichever columns of the direction they are.
    for halves in (((0, 4), (4, 8)), ((4, 8), (0, 4))):
        count = openings(rows=40, directions=4)
        for columns in 5 * halves:
            count.book("adjoint", 1, columns, None)
        for columns in (*halves, (3, 5), (7, 8)):
            refused(count, 1, columns, None)


def test_a_run_of_columns_from_cosines_to_sines():
    count, batch = openings(directions=4), np.arange(16)
    for _ in range(4):
        count.book("adjoint", 1, (3, 5), batch)  # direction 3 by its cosine, 0 by its sine
    count.book("adjoint", 1, (1, 3), batch)
    for columns in ((0, 1), (7, 8), (2, 4), ALL):
        refused(count, 1, columns, batch)


def test_gradients_of_both_kinds_up_to_those_agreed():
    count = openings(rows=4000, gradients=4, directions=4)
    count.book("adjoint", 1, ALL, None)
    count.book("adjoint", 2, (4, 8), None)
    with pytest.raises(PassesUsedUp, match="gradient 6 about a direction; 4 were agreed"):
        count.book("adjoint", 1, ALL, None)


def test_forward_passes_are_counted_by_rows_whatever_the_features():
    count = openings(passes=3, directions=4)
    count.book("forward", 3, ALL, None)
    with pytest.raises(PassesUsedUp, match="forward pass 4 over a row; 3 were agreed"):
        count.book("forward", 1, (4, 8), None)


def test_single_rows_count_where_all_rows_are_asked_for():
    count = openings(rows=40)
    for _ in range(4):
        count.book("adjoint", 1, ALL, np.arange(16))
    refused(count, 1, ALL, None)


@given(st.integers(0, 2**32 - 1))
def test_no_set_of_rows_has_more_than_two_bits_for_each(seed):
    generator, rows = np.random.default_rng(seed), 24
    count, booked = openings(rows), []
    for _ in range(40):
        size = int(generator.integers(4, rows + 1))
        batch = np.sort(generator.permutation(rows)[:size])
        outputs = int(generator.integers(1, 3))
        try:
            count.book("adjoint", outputs, ALL, None if size == rows else batch)
        except PassesUsedUp:
            break
        booked.append((outputs, set(batch.tolist())))
    for _ in range(50):
        some = set(generator.permutation(rows)[: generator.integers(1, rows + 1)].tolist())
        bits = sum(8 * outputs for outputs, batch in booked if batch <= some)
        assert bits <= 2 * len(some)


def test_all_is_counted_again_from_the_tally():
    tally, batch = Kept(), np.arange(16)
    first = openings(tally=tally)
    first.book("forward", 2, ALL, None)
    first.book("forward", 1, ALL, np.array([3, 7]))
    for _ in range(4):
        first.book("adjoint", 1, (0, 4), batch)
    first.book("adjoint", 4, (4, 8), None)
    assert first.forward == 3
    again = openings(tally=tally)
    assert again.forward == 3
    refused(again, 1, (0, 4), batch)
    again.book("adjoint", 6, (4, 8), None)
    refused(again, 1, (4, 8), None)


def test_what_is_refused_is_not_in_the_tally():
    tally = Kept()
    count = openings(passes=1, tally=tally)
    count.book("forward", 1, ALL, None)
    with pytest.raises(PassesUsedUp, match="asked for forward pass 2 over a row; 1 were agreed"):
        count.book("forward", 1, ALL, np.array([5]))
    with pytest.raises(SecrecyError, match="a gradient over 1 rows; fewer than 2 would show"):
        count.book("adjoint", 1, ALL, np.array([5]))
    with pytest.raises(SecrecyError, match="asked for a row twice"):
        count.book("forward", 1, ALL, np.array([5, 5]))
    refused(count, 11, ALL, None)
    assert [entry.tolist() for entry in tally.list] == [[1]]
