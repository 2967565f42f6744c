from __future__ import annotations

import os
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.secagg import interpolate_at_zero
from vertikal.errors import InputError, SecrecyError
from vertikal.secure.secagg.shamir import PRIME, SECRET_BYTES, join, split

SECRET = bytes(range(SECRET_BYTES))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_any_threshold_shares_give_the_secret(data):
    holders = data.draw(st.lists(st.integers(1, 10**6), min_size=1, max_size=12, unique=True))
    threshold = data.draw(st.integers(1, len(holders)))
    secret = data.draw(st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES))
    shares = split(secret, holders, threshold)
    chosen = data.draw(st.permutations(list(shares)))[:threshold]
    some = {x: shares[x] for x in chosen}
    assert join(some, threshold) == secret
    assert interpolate_at_zero(some, PRIME) == int.from_bytes(secret, "big")


def test_all_subsets_of_three_in_five():
    shares = split(SECRET, range(1, 6), 3)
    for chosen in combinations(shares, 3):
        assert join({x: shares[x] for x in chosen}, 3) == SECRET


def test_polynomials_longer_than_one_step_of_their_evaluation():
    for threshold in (16, 17, 35):
        shares = split(SECRET, range(9_950, 10_000), threshold)
        some = {x: shares[x] for x in list(shares)[-threshold:]}
        assert join(some, threshold) == SECRET
        assert interpolate_at_zero(some, PRIME) == int.from_bytes(SECRET, "big")


def test_fewer_shares_say_nothing():
    # For every secret there is a polynomial through the same two shares.
    shares = split(SECRET, [1, 2, 3], 3)
    other = int.from_bytes(os.urandom(SECRET_BYTES), "big")
    points = {0: other, 1: shares[1], 2: shares[2]}
    third = sum(y * basis_at(3, x, points) for x, y in points.items()) % PRIME
    assert join({1: shares[1], 2: shares[2], 3: third}, 3) == other.to_bytes(SECRET_BYTES, "big")


def basis_at(x: int, mine: int, points: dict[int, int]) -> int:
    value = 1
    for other in points:
        if other != mine:
            value = value * (x - other) * pow(mine - other, -1, PRIME) % PRIME
    return value


def test_two_sharings_of_one_secret_have_no_share_in_common():
    first, second = split(SECRET, range(1, 20), 4), split(SECRET, range(1, 20), 4)
    assert not set(first.values()) & set(second.values())


def test_a_small_error_in_a_share_gives_another_secret():
    shares = split(SECRET, range(1, 6), 3)
    assert join({**shares, 1: (shares[1] + 1) % PRIME}, 3) != SECRET


def test_shares_of_no_secret_are_refused():
    shares = split(SECRET, [1, 2], 2)
    # The line through both has 2^250 at zero, which 31 bytes cannot hold.
    second = (2 * shares[1] - 2**250) % PRIME
    with pytest.raises(SecrecyError, match="do not fit"):
        join({1: shares[1], 2: second}, 2)


@pytest.mark.parametrize(
    ("secret", "holders", "threshold"),
    [
        (SECRET[1:], [1, 2], 2),
        (SECRET, [1, 1], 2),
        (SECRET, [0, 1], 2),
        (SECRET, [1, PRIME], 2),
        (SECRET, [1, 2], 3),
        (SECRET, [1, 2], 0),
    ],
)
def test_bad_sharings_are_refused(secret, holders, threshold):
    with pytest.raises(InputError, match="must be"):
        split(secret, holders, threshold)


def test_too_few_or_foreign_shares_are_refused():
    shares = split(SECRET, [1, 2, 3], 2)
    with pytest.raises(SecrecyError, match="at least 2 are needed, got 1"):
        join({1: shares[1]}, 2)
    with pytest.raises(SecrecyError, match="holder 2 is not an element"):
        join({1: shares[1], 2: PRIME}, 2)
