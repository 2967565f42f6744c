"""Private set intersection: exact for any sets, and what goes wrong is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.secure.meddling import changing
from tests.secure.psi.intersection_run import ids, intersect
from vertikal.errors import AgreementError, InputError, MeshError, SecrecyError
from vertikal.secure.psi import intersection
from vertikal.secure.psi.intersection import capacity_of

SETS = {"a": ids(range(40)), "b": ids(range(20, 60)), "c": ids([*range(30, 40), *range(70, 90)])}


def in_order(session, sets):
    """The common ids as each party lists them."""
    return [[sets[name][row] for row in rows] for name, rows in session.rows.items()]


@settings(max_examples=15)
@given(
    st.lists(
        st.lists(st.integers(0, 40), min_size=1, max_size=40, unique=True), min_size=2, max_size=5
    )
)
def test_it_is_the_plain_intersection_in_one_order(numbers):
    sets = {f"p{place}": ids(some) for place, some in enumerate(numbers)}
    common = set.intersection(*(set(some) for some in sets.values()))
    session = intersect(sets)
    if not common:
        with pytest.raises(SecrecyError, match="0 ids are common"):
            session.outcome.unwrap()
        return
    first, *others = in_order(session, sets)
    assert set(first) == common
    assert len(first) == len(common)
    assert all(other == first for other in others)
    assert len(session.digests) == 1


@pytest.mark.parametrize("chunk", [7, 64, 100])
def test_sets_of_unequal_size_in_many_messages(monkeypatch, chunk):
    monkeypatch.setattr(intersection, "CHUNK", chunk)
    monkeypatch.setattr(intersection, "SPAN", 50)
    sets = {"a": ids(range(100)), "b": ids(range(300)), "c": ids(range(50, 150))}
    for order in ("abc", "bca", "cab"):
        chosen, done = {name: sets[name] for name in order}, []
        session = intersect(chosen, advance=done.append)
        first, *others = in_order(session, chosen)
        assert set(first) == set(ids(range(50, 100)))
        assert others == [first, first]
        assert sum(done) == 3 * capacity_of(300)


def test_exactly_one_full_message_of_labels(monkeypatch):
    monkeypatch.setattr(intersection, "SPAN", 20)
    sets = {"a": ids(range(40)), "b": ids(range(20, 60))}
    assert len(intersect(sets).rows["b"]) == 20


def test_the_order_follows_from_a_secret_of_the_leader():
    """Other secrets, other orders; the same secret gives the same, as a resumed job needs it."""
    orders = [in_order(intersect(SETS), SETS)[0] for _ in range(3)]
    assert all(set(order) == set(ids(range(30, 40))) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    again = [in_order(intersect(SETS, order_key=bytes(32)), SETS)[0] for _ in range(2)]
    assert again[0] == again[1]


def test_others_learn_sizes_to_within_a_sixteenth():
    assert [capacity_of(n) for n in (1, 63, 64, 65, 100, 1000, 100_000)] == [
        *(64, 64, 64, 68, 100, 1024, 102_400)
    ]
    for count in range(1, 5000, 7):
        assert count <= capacity_of(count) <= max(64, count * 17 / 16)


def test_too_few_common_ids_end_it_before_others_know_which():
    session = intersect(SETS, least=11)
    error = session.outcome.errors["a"]
    assert str(error).startswith("a: 10 ids are common to a, b, c, at least 11 must be")
    assert isinstance(error, SecrecyError)
    assert not session.tape.arrays("alignment/0/matches")
    assert set(session.outcome.errors) == {"a", "b", "c"}


def test_the_largest_least_number_counts():
    session = intersect(SETS, least={"a": 1, "b": 11, "c": 2})
    with pytest.raises(SecrecyError, match=r"a: 10 ids are common .*, at least 11 must be"):
        raise session.outcome.errors["a"]
    assert not session.tape.arrays("alignment/0/matches")


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ({"a": []}, "two parties at least"),
        ({"a": [], "b": ids([1])}, "ids must be at least one, all distinct"),
        ({"a": ids([1, 1]), "b": ids([1])}, "ids must be at least one, all distinct"),
    ],
)
def test_sets_that_are_none(sets, said):
    with pytest.raises(InputError, match=said):
        intersect(sets).outcome.unwrap()


def other_labels(change):
    """A leader that names other ids to b than it should."""
    return {"a": changing("matches", change, to="b")}


@pytest.mark.parametrize(
    "change",
    [
        lambda labels: np.concatenate((labels[:1], labels[:1], labels[2:])),
        lambda labels: labels ^ np.uint8(1),
        lambda labels: labels[:, :8],
    ],
    ids=["one twice", "unknown", "short"],
)
def test_labels_that_are_not_of_own_ids_are_refused(change):
    session = intersect(SETS, wires=other_labels(change))
    error = session.outcome.errors["b"]
    assert isinstance(error, MeshError)
    assert "a named as common an id that is not here, or one id twice" in str(error)


def test_something_else_than_labels_is_refused():
    session = intersect(SETS, wires=other_labels(lambda labels: labels.astype(np.int64)))
    assert "a sent something else than labels" in str(session.outcome.errors["b"])


@pytest.mark.parametrize(
    "change",
    [lambda labels: labels[1:], lambda labels: labels[::-1]],
    ids=["fewer", "another order"],
)
def test_a_party_that_was_told_something_else_is_noticed_by_all(change):
    session = intersect(SETS, wires=other_labels(change))
    kinds = {name: type(error) for name, error in session.outcome.errors.items()}
    assert AgreementError in kinds.values()
    assert set(kinds) == {"a", "b", "c"}
    assert any("nothing is aligned" in str(e) for e in session.outcome.errors.values())


@pytest.mark.parametrize(
    ("field", "value"),
    [("capacity", 0), ("capacity", 2**40), ("least", 0), ("salt", b"short"), ("more", 1)],
)
def test_sizes_that_cannot_be_are_refused(field, value):
    wires = {"b": changing("sizes", lambda sizes: {**sizes, field: value})}
    session = intersect(SETS, wires=wires, deadline=20.0)
    with pytest.raises(MeshError, match="sizes of b"):
        raise session.outcome.errors["a"]


@pytest.mark.parametrize("who", ["a", "b"])
def test_whoever_brings_more_than_was_agreed_gets_no_answer(who):
    """The leader (a) and any other party."""
    sets = {**SETS, who: ids(range(1000))}
    other = "b" if who == "a" else "a"
    session = intersect(sets, most={other: {who: 900, "c": 30}})
    error = session.outcome.errors[other]
    assert isinstance(error, AgreementError)
    assert f"{other}: {who} brings up to 1024 ids to the alignment, 928 at most" in str(error)
    answered = [x for x in session.tape if x.header.sender == other]
    assert {x.header.tag.rpartition("/")[2] for x in answered} == {"agreement", "sizes"}


def test_as_many_ids_as_were_agreed_are_taken():
    """In rounded numbers: 30 ids are announced as 64."""
    session = intersect(SETS, most={"a": {"b": 40, "c": 30}, "b": {"a": 1, "c": 64}})
    assert len(session.rows["a"]) == 10


@pytest.mark.parametrize("step", ["compare_sizes", "pass_round", "gather", "spread", "check"])
@pytest.mark.parametrize("who", ["a", "b"])
def test_a_party_that_stops_is_named_by_all_others(step, who):
    def meddle(part):
        def stop(*_):
            raise RuntimeError("out of memory")

        setattr(part, step, stop)

    session = intersect(SETS, meddle={who: meddle})
    others = {name: error for name, error in session.outcome.errors.items() if name != who}
    assert set(others) == set(SETS) - {who}
    for error in others.values():
        assert isinstance(error, MeshError)
        assert "out of memory" in str(error)


def test_the_wrong_number_of_points_is_refused():
    session = intersect(SETS, wires={"b": changing("evaluated", lambda points: points[:-1])})
    assert "b sent uint8 (63, 32)" in str(session.outcome.errors["a"])
