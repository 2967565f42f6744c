"""The count of equal things: right, and nothing but a count."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from tests.conformance.running import run
from tests.secure.meddling import changing
from vertikal.errors import MeshError
from vertikal.mesh import RecordingMesh, Tape, local_meshes
from vertikal.secure.psi import equal_count
from vertikal.secure.psi.equal_count import count_equal
from vertikal.secure.psi.group import Exponent, hash_to_points, workers

ONE = [b"yes", b"no", b"no", b"yes", b"yes"]


def count(one, two, wires=None, names=("bank", "shop")):
    tape = Tape()
    ends = {name: RecordingMesh(end, tape) for name, end in local_meshes(names, 20).items()}
    ends |= {name: wire(ends[name]) for name, wire in (wires or {}).items()}
    lists = dict(zip(names, (one, two), strict=True))

    def work(mesh):
        (peer,) = mesh.peers
        return count_equal(mesh, peer, lists[mesh.me], "0", nullcontext())

    return run(ends, work), tape


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        (ONE, 5),
        ([b"no", b"yes", b"yes", b"no", b"no"], 0),
        ([b"no", b"no", b"no", b"yes", b"yes"], 4),
        # The same things at other places are not equal.
        ([b"yes", b"yes", b"no", b"no", b"yes"], 3),
    ],
)
@pytest.mark.parametrize("names", [("bank", "shop"), ("shop", "bank")])
def test_both_learn_how_many_are_equal(other, equal, names):
    outcome, _ = count(ONE, other, names=names)
    assert outcome.unwrap() == dict.fromkeys(names, equal)


def as_set(points):
    return {point.tobytes() for point in points}


def test_no_message_is_a_point_of_a_known_thing(monkeypatch):
    """A search of all classes at all places finds nothing: every point carries a secret."""
    domains = []

    def hashing(messages, domain, threads):
        domains.append(domain)
        return hash_to_points(messages, domain, threads)

    monkeypatch.setattr(equal_count, "hash_to_points", hashing)
    _, tape = count(ONE, ONE)
    guesses = [place.to_bytes(8, "big") + x for place in range(5) for x in (b"yes", b"no")]
    with workers(1) as threads:
        known = as_set(hash_to_points(guesses, domains[0], threads))
    sent = np.concatenate(tape.arrays("equal/0"))
    assert sent.shape == (3 * len(ONE), 32)
    assert not known & as_set(sent)


def test_answers_are_shuffled(monkeypatch):
    """The party that asks must not learn by the order which places differ."""
    made = []
    monkeypatch.setattr(equal_count, "Exponent", lambda: made.append(Exponent()) or made[-1])
    things = [str(number).encode() for number in range(40)]
    _, tape = count(things, things)
    (blinded,), (answered,), (others,) = (
        tape.arrays(f"equal/0/{step}") for step in ("blinded", "evaluated", "others")
    )
    with workers(1) as threads:
        # One of the two exponents is the answering party's.
        in_order = [one.times(blinded, threads) for one in made]
        plain = [one.times(others, threads) for one in made]
    assert sum(as_set(one) == as_set(answered) for one in in_order) == 1
    assert not any((one == answered).all() for one in in_order)
    assert sum(as_set(one) == as_set(answered) for one in plain) == 1
    assert not any((one == answered).all() for one in plain)
    # Their own things are in another order than the places, too.
    theirs = next(e for e, p in zip(made, in_order, strict=True) if as_set(p) == as_set(answered))
    mine = next(e for e in made if e is not theirs)
    with workers(1) as threads:
        assert not (mine.times(others, threads) == theirs.times(blinded, threads)).all()


@pytest.mark.parametrize("told", [{"equal": 6}, {"equal": -1}, {"equal": True}, {"equal": "5"}, {}])
def test_a_count_that_cannot_be_is_refused(told):
    outcome, _ = count(ONE, ONE, {"bank": changing("count", lambda _: told)})
    with pytest.raises(MeshError, match="bank sent no count of equal things"):
        raise outcome.errors["shop"]


def test_a_count_must_be_a_record():
    outcome, _ = count(ONE, ONE, {"bank": changing("count", lambda _: np.zeros(1))})
    with pytest.raises(MeshError, match="bank sent no count of equal things"):
        raise outcome.errors["shop"]
