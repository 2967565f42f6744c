"""The group: libsodium's points against plain arithmetic, and what is refused."""

from __future__ import annotations

import copy
import hashlib
import sys

import numpy as np
import pytest

from tests.naive import curve
from vertikal.errors import InputError, SecrecyError
from vertikal.secure.keys import prg
from vertikal.secure.psi import group
from vertikal.secure.psi.group import ORDER, Exponent, hash_to_points, workers

MESSAGES = [f"id {number}".encode() for number in range(40)]


def as_integers(points):
    return [int.from_bytes(point.tobytes(), "little") for point in points]


@pytest.fixture
def drawn(monkeypatch):
    """The random keys that exponents were made of."""
    keys = []
    monkeypatch.setattr(group, "fresh_key", lambda: keys.append(prg.fresh_key()) or keys[-1])
    return keys


def number_of(key):
    """RFC 7748, section 5: the number that X25519 makes of a key."""
    return int.from_bytes(key, "little") & (2**254 - 8) | 2**254


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


def test_multiplication_is_the_ladder_and_commutes(points, threads, drawn):
    one = Exponent()
    number = number_of(drawn[-1])
    two = Exponent()
    once = one.times(points, threads)
    assert as_integers(once[:5]) == [curve.times(number, u) for u in as_integers(points[:5])]
    assert (two.times(once, threads) == one.times(two.times(points, threads), threads)).all()


def test_blinding_is_taken_off(points, threads):
    blind, key = Exponent(), Exponent()
    answered = key.times(blind.times(points, threads), threads)
    assert (blind.undo(answered, threads) == key.times(points, threads)).all()


def test_exponents_are_fresh_and_of_the_form_of_x25519(points, threads, drawn):
    found = set()
    for _ in range(20):
        exponent = Exponent()
        (product,) = as_integers(exponent.times(points[:1], threads))
        # The number is all of the last key that was drawn; the ones before had no inverse.
        assert product == curve.times(number_of(drawn[-1]), *as_integers(points[:1]))
        found.add(product)
    assert len(found) == 20


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


def test_an_exponent_stays_where_it_is(drawn):
    exponent = Exponent()
    for leave in (copy.copy, copy.deepcopy, lambda one: one.__reduce_ex__(2)):
        with pytest.raises(SecrecyError, match="does not leave"):
            leave(exponent)
    number = number_of(drawn[-1])
    for form in (str(number), f"{number:x}", number.to_bytes(32, "little").hex()):
        assert form not in repr(exponent)


def test_without_pynacl_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "nacl.bindings", None)
    with pytest.raises(InputError, match=r'pip install "vertikal\[node\]"'):
        group.libsodium()
