"""Whole aggregations: exact whoever drops, and nothing readable on the way."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.uniformity import check_uniform
from tests.naive.secagg import plain_sum
from vertikal.errors import InputError, SecrecyError, ThresholdMissed, WireError
from vertikal.ring.integers import Ring
from vertikal.secure.secagg.in_one_process import aggregate
from vertikal.secure.secagg.neighbours import everybody, plan_neighbours
from vertikal.secure.secagg.rounds import (
    SERVER,
    STAGES,
    Advertisement,
    Revealed,
    Terms,
    decode,
    decode_vector,
    encode,
)


def vectors(count: int, length: int, bits: int, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {
        f"c{i:03d}": generator.integers(0, 2**bits, length, dtype=f"uint{bits}")
        for i in range(count)
    }


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(2, 14),
    bits=st.sampled_from([8, 16, 32, 64]),
    length=st.integers(1, 40),
    data=st.data(),
)
def test_exact_with_any_drop_outs_up_to_the_threshold(count, bits, length, data):
    values = vectors(count, length, bits)
    room = count - everybody(count).threshold
    leavers = data.draw(st.lists(st.sampled_from(sorted(values)), max_size=room, unique=True))
    drops = {name: data.draw(st.sampled_from(STAGES)) for name in leavers}
    result = aggregate(
        list(values), values.__getitem__, ring=Ring(bits), length=length, drops=drops
    )
    stayed = [n for n in values if n not in drops or STAGES.index(drops[n]) > 3]
    assert list(result.survivors) == sorted(stayed)
    assert np.array_equal(result.total, plain_sum(values, stayed))


@pytest.mark.parametrize("stage", STAGES)
def test_exact_with_the_most_drop_outs_at_one_stage(stage):
    values = vectors(40, 30, 32)
    room = 40 - everybody(40).threshold
    leavers = sorted(values)[3 : 3 + room]
    result = aggregate(
        list(values),
        values.__getitem__,
        ring=Ring(32),
        length=30,
        drops=dict.fromkeys(leavers, stage),
    )
    assert np.array_equal(result.total, plain_sum(values, result.survivors))
    with pytest.raises(ThresholdMissed, match="nothing is opened"):
        aggregate(
            list(values),
            values.__getitem__,
            ring=Ring(32),
            length=30,
            drops=dict.fromkeys([*leavers, "c039"], stage),
        )


def test_two_hundred_clients_on_a_ring_with_drop_outs_at_every_stage():
    values = vectors(200, 50, 16)
    drops = {name: STAGES[i % 6] for i, name in enumerate(sorted(values)[:20])}
    result = aggregate(
        list(values),
        values.__getitem__,
        ring=Ring(16),
        length=50,
        plan=plan_neighbours(200),
        drops=drops,
    )
    assert len(result.survivors) == 186
    assert np.array_equal(result.total, plain_sum(values, result.survivors))
    assert set(result.bytes_sent) == set(result.bytes_received) | {STAGES[0]}


def test_masked_vectors_look_uniform_and_never_alike():
    """The same constant vector at everybody, twice: nothing of it is on the tape."""
    frames = []
    for _ in range(2):
        tape: list[tuple[str, str, str, bytes]] = []
        names = [f"c{i}" for i in range(6)]
        aggregate(
            names,
            lambda _: np.full(600, 7, np.uint16),
            ring=Ring(16),
            length=600,
            drops={"c5": STAGES[3]},
            tape=tape,
        )
        frames += [
            np.frombuffer(raw[-1200:], np.uint16)
            for _, _, stage, raw in tape
            if stage == STAGES[3] and len(raw) > 1200
        ]
    assert len(frames) == 10
    check_uniform(frames)


def test_no_secret_share_travels_unencrypted_before_the_end():
    tape: list[tuple[str, str, str, bytes]] = []
    names = [f"c{i}" for i in range(5)]
    aggregate(
        names,
        lambda _: np.zeros(4, np.uint8),
        ring=Ring(8),
        length=4,
        drops={"c4": STAGES[3]},
        tape=tape,
    )
    answers = {
        sender: decode(raw, sender, SERVER, STAGES[5], Revealed)
        for sender, _, stage, raw in tape
        if stage == STAGES[5] and sender != SERVER
    }
    assert len(answers) == 4
    before = b"".join(raw for _, _, stage, raw in tape if stage != STAGES[5])
    for answer in answers.values():
        # Of every client one kind of share, and never a share that was readable earlier.
        assert not set(answer.self_masks) & set(answer.pad_keys)
        for share in (*answer.self_masks.values(), *answer.pad_keys.values()):
            assert share not in before


def test_repeated_aggregations_have_nothing_in_common():
    tapes: list[list[tuple[str, str, str, bytes]]] = [[], []]
    for tape in tapes:
        aggregate(["a", "b"], lambda _: np.zeros(64, np.uint8), ring=Ring(8), length=64, tape=tape)
    # All but the list of survivors, and coins that nobody need show where all are neighbours.
    first, second = (
        {
            raw
            for sender, _, stage, raw in tape
            if (sender == SERVER, stage) not in ((True, STAGES[4]), (False, STAGES[1]))
        }
        for tape in tapes
    )
    assert len(first) == len(second) == 22 - 4
    assert not first & second


def test_a_client_that_lies_about_its_shape_is_refused():
    with pytest.raises(InputError, match=r"values of b must be uint16 \(4,\)"):
        aggregate(
            ["a", "b"],
            lambda name: np.zeros(5 if name == "b" else 4, np.uint16),
            ring=Ring(16),
            length=4,
        )


@pytest.mark.parametrize("drops", [{"z": STAGES[0]}, {"a": "later"}])
def test_wrong_drops_are_refused(drops):
    with pytest.raises(InputError, match="drops must be"):
        aggregate(["a", "b"], lambda _: np.zeros(1, np.uint8), ring=Ring(8), length=1, drops=drops)


SAID = Advertisement("ada", bytes(32), bytes(32), bytes(32), bytes(32), bytes(64))


def test_a_message_survives_the_way():
    raw = encode("ada", SERVER, STAGES[0], SAID)
    assert decode(raw, "ada", SERVER, STAGES[0], Advertisement) == SAID


@pytest.mark.parametrize(
    ("raw", "kind", "message"),
    [
        (lambda raw: raw[:-1], WireError, "cut short"),
        (lambda raw: raw + b"x", WireError, "too long"),
        (lambda raw: os.urandom(8) + raw, WireError, "not a frame"),
        (lambda _: encode("ada", SERVER, STAGES[2], SAID), SecrecyError, "expected a message"),
        (lambda _: encode("bob", SERVER, STAGES[0], SAID), SecrecyError, "from bob to server"),
        (
            lambda _: encode("ada", SERVER, STAGES[0], Revealed({}, {})),
            WireError,
            "ada sent a wrong message",
        ),
    ],
)
def test_broken_messages_are_refused(raw, kind, message):
    whole = encode("ada", SERVER, STAGES[0], SAID)
    with pytest.raises(kind, match=message):
        decode(raw(whole), "ada", SERVER, STAGES[0], Advertisement)


@pytest.mark.parametrize(
    "payload", [np.zeros(3, np.uint16), np.zeros(4, np.uint32), np.zeros((4, 1), np.uint16), SAID]
)
def test_a_masked_vector_of_another_shape_is_refused_by_the_server(payload):
    terms = Terms("job", ("ada", "bob"), everybody(2), {}, Ring(16), 4)
    raw = encode("ada", SERVER, STAGES[3], payload)
    with pytest.raises(WireError, match=r"ada must send uint16 \(4,\), got .*nothing is opened"):
        decode_vector(raw, "ada", terms)
