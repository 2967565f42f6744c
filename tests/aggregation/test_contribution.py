"""A client's numbers are checked before anything leaves it, and errors say which one is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.aggregation.contribution import Contribution
from vertikal.aggregation.task import Task
from vertikal.errors import InputError

COLUMNS = Task(kind="columns", rows=3, columns=2, largest=9)
RATINGS = Task(kind="ratings", rows=3)


@pytest.mark.parametrize(
    ("task", "columns", "words"),
    [
        (COLUMNS, [[1, 2], [3, 10], [99, 0]], "at most 9 in magnitude, got 10 in row 2"),
        (COLUMNS, [1.0, 2.0, 2.5], r"at most 9 in magnitude, got 2\.5 in row 3"),
        (COLUMNS, [-10, 0, 0], "at most 9 in magnitude, got -10 in row 1"),
        (COLUMNS, [1, 2], "columns must be of 3 rows, got 2"),
        (COLUMNS, np.ones((3, 3)), "columns must be at most 2 of a client, got 3"),
        (COLUMNS, ["a", "b", "c"], "finite numbers in one or two dimensions"),
        (COLUMNS, [np.nan, 0.0, 0.0], "finite numbers in one or two dimensions"),
        (RATINGS, [0, -1, 1], "ratings must be 0 or 1, got negative numbers"),
    ],
)
def test_numbers_that_cannot_be_summed(task, columns, words):
    with pytest.raises(InputError, match=words):
        Contribution(columns, task)


def test_items_that_there_are_not():
    with pytest.raises(InputError, match="items must be numbers below 3, got 3"):
        Contribution.of_items([0, 3], RATINGS)


def test_items_are_a_column_of_zeros_and_ones():
    given = Contribution.of_items([2, 0, 2], RATINGS)
    assert given.digest == Contribution([1, 0, 1], RATINGS).digest
    (tile,) = RATINGS.tiles()
    assert given.products(tile, RATINGS.ring).tolist() == [1, 0, 1, 0, 0, 1]
