"""Rounds whose sums can be subtracted from one another."""

from __future__ import annotations

import pytest

from vertikal.secure.secagg.differences import may_be_subtracted, too_many


@pytest.mark.parametrize(
    ("sets", "users", "bad"),
    [
        (["abc"], 3, False),
        (["abc", "abc"], 3, False),
        (["abc", "abd"], 400, True),
        (["abcdefgh", "ijklmnop"], 400, False),
        (["abcdefgh", "ijklmnop"], 7, True),
    ],
)
def test_rounds_that_can_be_subtracted(sets, users, bad):
    assert may_be_subtracted([frozenset(one) for one in sets], users) is bad


@pytest.mark.parametrize(("fewest", "bad"), [(2, False), (3, True)])
def test_the_fewest_clients_between_rounds_can_be_chosen(fewest, bad):
    assert may_be_subtracted([frozenset("abc"), frozenset("abd")], 400, fewest) is bad


def test_a_round_for_every_four_clients_is_not_too_many():
    assert not too_many(1, 2)
    assert not too_many(10, 40)
    assert too_many(11, 40)
