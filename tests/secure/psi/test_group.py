"""The group: libsodium's points against plain arithmetic, and what is refused."""

from __future__ import annotations

import copy
import hashlib
import sys

import numpy as np
import pytest

from tests.naive import curve
from vertikal.errors import InputError, SecrecyError
from vertikal.secure.psi import group
from vertikal.secure.psi.group import ORDER, Exponent, hash_to_points, workers

MESSAGES = [f"id {number}".encode() for number in range(40)]


def as_integers(points):
    return [int.from_bytes(point.tobytes(), "little") for point in points]


def number_of(exponent):
    return int.from_bytes(exponent._number, "little")


@pytest.fixture(scope="module")
def threads():
    with workers(3) as some:
        yield some


@pytest.fixture(scope="module")
def points(threads):
    return hash_to_points(MESSAGES, b"domain", threads)


def test_hashing_is_elligator_2_times_eight(points):
    prefix = hashlib.sha256(b"domain").digest()
    for message, found in zip(MESSAGES, as_integers(points), strict=True):
        raw = int.from_bytes(hashlib.sha256(prefix + message).digest(), "little") % 2**255
        assert found == curve.times(8, curve.elligator2(raw))


def test_points_are_of_the_subgroup_of_prime_order(points):
    for found in as_integers(points):
        assert curve.on_the_curve(found)
        assert curve.times(ORDER, found) == 0


def test_a_plain_hash_would_show_a_bit_of_each_id_and_points_do_not(points, threads):
    """A point stays on the curve, or off it, when multiplied: this must not tell ids apart."""
    raw = np.frombuffer(b"".join(hashlib.sha256(m).digest() for m in MESSAGES), np.uint8)
    plain = raw.reshape(-1, 32) & np.array([255] * 31 + [127], np.uint8)
    exponent = Exponent()
    for given, leaks in ((plain, True), (points, False)):
        before = [curve.on_the_curve(u) for u in as_integers(given)]
        after = [curve.on_the_curve(u) for u in as_integers(exponent.times(given, threads))]
        assert before == after
        assert (len(set(after)) == 2) == leaks


def test_multiplication_is_the_ladder_and_commutes(points, threads):
    one, two = Exponent(), Exponent()
    once = one.times(points, threads)
    assert as_integers(once[:5]) == [
        curve.times(number_of(one), u) for u in as_integers(points[:5])
    ]
    assert (two.times(once, threads) == one.times(two.times(points, threads), threads)).all()


def test_blinding_is_taken_off(points, threads):
    blind, key = Exponent(), Exponent()
    answered = key.times(blind.times(points, threads), threads)
    assert (blind.undo(answered, threads) == key.times(points, threads)).all()


def test_exponents_are_fresh_and_of_the_form_of_x25519():
    drawn = [number_of(Exponent()) for _ in range(20)]
    assert len(set(drawn)) == 20
    assert all(2**254 <= number < 2**255 and number % 8 == 0 for number in drawn)
    assert len({number >> 246 for number in drawn}) > 5


def test_other_domains_give_other_points(points, threads):
    other = hash_to_points(MESSAGES, b"another", threads)
    assert not {p.tobytes() for p in points} & {p.tobytes() for p in other}


@pytest.mark.parametrize("count", [1, 2, 7, None])
def test_any_number_of_threads_keeps_the_order(points, count):
    with workers(count) as some:
        assert (hash_to_points(MESSAGES, b"domain", some) == points).all()
        assert hash_to_points([], b"domain", some).shape == (0, 32)
        assert Exponent().times(points[:0], some).shape == (0, 32)


@pytest.mark.parametrize("coordinate", [0, 1])
def test_a_point_of_small_order_is_refused(threads, coordinate):
    bad = np.zeros((1, 32), np.uint8)
    bad[0, 0] = coordinate
    with pytest.raises(SecrecyError, match="small order"):
        Exponent().times(bad, threads)


def test_an_exponent_stays_where_it_is():
    exponent = Exponent()
    for leave in (copy.copy, copy.deepcopy, lambda one: one.__reduce_ex__(2)):
        with pytest.raises(SecrecyError, match="does not leave"):
            leave(exponent)
    assert exponent._number.hex() not in repr(exponent)


def test_without_pynacl_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "nacl.bindings", None)
    with pytest.raises(InputError, match=r'pip install "vertikal\[node\]"'):
        group.libsodium()
