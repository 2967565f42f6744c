"""The frames of an intersection, one by one: none says who has which id.

Sets are made so that pairs of parties have far more in common than all of them, and a reader of the
frames tries to notice.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from unittest import mock

import numpy as np
import pytest

from tests.conformance.uniformity import check_uniform
from tests.naive import curve
from tests.secure.psi.intersection_run import ids, intersect
from vertikal.secure.keys.prg import encode_texts
from vertikal.secure.psi import intersection
from vertikal.secure.psi.group import Exponent, hash_to_points, workers
from vertikal.secure.psi.oblivious_table import decode, key_words
from vertikal.secure.sums.pads import PaddedSum

# a and b share 450, a and c 300, b and c 250; all three 100.
SETS = {
    "a": ids([*range(0, 450), *range(1000, 1200)]),
    "b": ids([*range(0, 450), *range(2000, 2150)]),
    "c": ids([*range(0, 100), *range(1000, 1200), *range(2000, 2150)]),
}
# The same sizes and the same number common to all, with nothing else in common.
APART = {
    "a": ids([*range(0, 100), *range(5000, 5550)]),
    "b": ids([*range(0, 100), *range(6000, 6500)]),
    "c": ids([*range(0, 100), *range(7000, 7350)]),
}
COMMON = set(ids(range(100)))


@pytest.fixture(scope="module")
def summed():
    """The sum of the tables, which only the leader has."""
    return []


@pytest.fixture(scope="module")
def exponents():
    """The secret of each party."""
    return {}


@pytest.fixture(scope="module")
def session(summed, exponents):
    original = PaddedSum.sum

    def keep_the_sum(self, values, to):
        total = original(self, values, to)
        if total is not None:
            summed.append(total.copy())
        return total

    def keep_the_secret():
        return exponents.setdefault(threading.current_thread().name, Exponent())

    with (
        mock.patch.object(PaddedSum, "sum", keep_the_sum),
        mock.patch.object(intersection, "Exponent", keep_the_secret),
    ):
        return intersect(SETS)


def domain(session, *purpose):
    """Return what keeps the hashes of this run apart from all others: names, and the salt."""
    (salt,) = {
        frame.payload()["salt"]
        for frame in session.tape
        if (frame.header.sender, frame.header.tag) == ("a", "alignment/0/sizes")
    }
    return encode_texts("alignment", "a", "b", "c", *purpose) + salt


def stored_values(session, exponents, party):
    """The half of F(id) = hash(k·P(id), id) that ``party`` stores under an id, for the ids of a."""
    with workers() as threads:
        points = hash_to_points(SETS["a"], domain(session, "points"), threads)
        points = exponents[party].times(points, threads)
    prefix = hashlib.sha256(domain(session, "function", party)).digest()
    values = [
        hashlib.sha256(prefix + point.tobytes() + one).digest()[:16]
        for point, one in zip(points, SETS["a"], strict=True)
    ]
    return np.frombuffer(b"".join(values), "<u8").reshape(-1, 2)


def shapes(session):
    return Counter(
        (
            frame.header.sender,
            frame.header.receiver,
            frame.header.tag,
            frame.header.shape,
            frame.payload_size if frame.header.kind == "record" else 0,
        )
        for frame in session.tape
        if frame.header.tag != "agreement"
    )


def test_what_pairs_have_in_common_changes_no_frame(session):
    """Same sizes, same number of common ids: the same frames, whatever else overlaps."""
    assert {name: len(some) for name, some in APART.items()} == {
        name: len(some) for name, some in SETS.items()
    }
    assert shapes(session) == shapes(intersect(APART))


def test_no_id_travels_in_any_form_that_others_can_make(session):
    everything = b"".join(b"".join(bytes(part) for part in f.buffers()) for f in session.tape)
    with workers() as threads:
        for some in SETS.values():
            points = hash_to_points(some, domain(session, "points"), threads)
            for one, point in zip(some, points, strict=True):
                assert one not in everything
                assert hashlib.sha256(one).digest() not in everything
                assert point.tobytes() not in everything


def test_points_are_all_different_on_the_curve_and_as_many_as_was_said(session):
    sent = np.concatenate(session.tape.arrays("alignment/0/blinded", receiver="b"))
    again = np.concatenate(session.tape.arrays("alignment/0/blinded", receiver="c"))
    assert (sent == again).all()
    assert len(sent) == 672  # 650 ids, rounded up
    assert len({point.tobytes() for point in sent}) == len(sent)
    assert all(curve.on_the_curve(int.from_bytes(p.tobytes(), "little")) for p in sent)


def test_points_of_two_runs_have_nothing_in_common(session):
    def points(one):
        return {p.tobytes() for array in one.tape.arrays("alignment/0") for p in array}

    assert not points(session) & points(intersect(SETS))


def test_tables_on_their_way_are_uniform(session):
    """Each summand is padded: the leader reads the sum, nobody reads one party's table."""
    tables = session.tape.arrays("sum/alignment 0")
    assert {array.dtype for array in tables} == {np.dtype("uint64")}
    assert len(tables) == 2
    check_uniform(tables)


def test_the_leader_cannot_tell_what_one_other_party_has(session, summed, exponents):
    """It takes F_b and F_c off what the summed table reads, and sees noise for ids of pairs."""
    read = decode(np.concatenate(summed), key_words(SETS["a"], domain(session, "slots")))
    stored = {name: stored_values(session, exponents, name) for name in "bc"}
    for guess, expected in (
        (stored["b"], set()),
        (stored["c"], set()),
        (stored["b"] + stored["c"], COMMON),
    ):
        agree = (read == guess).all(axis=1)
        assert {SETS["a"][row] for row in np.flatnonzero(agree)} == expected
    # Ids that b has and c lacks leave noise, as those that c has, or neither, do.
    rest = np.array([one not in COMMON for one in SETS["a"]])
    check_uniform([read[rest]])
    check_uniform([(read - stored["b"])[rest]])
    check_uniform([(read - stored["c"])[rest]])


def test_labels_are_for_common_ids_and_differ_by_receiver(session):
    at_b = session.tape.arrays("alignment/0/matches", receiver="b")
    at_c = session.tape.arrays("alignment/0/matches", receiver="c")
    assert [array.shape for array in (*at_b, *at_c)] == [(100, 16), (100, 16)]
    labels = [{label.tobytes() for label in array} for array in (*at_b, *at_c)]
    assert len(labels[0]) == len(labels[1]) == 100
    assert not labels[0] & labels[1]


def test_every_party_lists_the_common_ids_and_no_others(session):
    for name, rows in session.rows.items():
        assert {SETS[name][row] for row in rows} == COMMON
