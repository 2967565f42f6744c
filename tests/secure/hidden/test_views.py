"""The views of all roles of hidden phases: uniform numbers, whatever the data.

Frames on the wire carry a pad on top, so that these tests read with the receiver's eyes.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.uniformity import THRESHOLD, check_uniform, check_unrelated, p_value
from tests.secure.hidden.hidden_run import (
    NAMES,
    ROLES,
    Session,
    cosines,
    draw_phases,
    hide,
    pairs_of,
)
from tests.secure.kept import matrices_in

ROWS, WIDTH = 192, 64


def constant(value):
    return {name: np.full((ROWS, WIDTH), value, np.uint8) for name in NAMES}


ADVERSARIAL = {
    "all zero": constant(0),
    "all half a turn": constant(128),
    "equal rows": {
        name: np.repeat(part, ROWS, axis=0) for name, part in draw_phases(1, WIDTH).items()
    },
    "one party all, the others nothing": constant(0)
    | {"sue": np.tile(np.arange(WIDTH, dtype=np.uint8), (ROWS, 1))},
    "drawn": draw_phases(ROWS, WIDTH, 5),
}
every_data = pytest.mark.parametrize("data", ADVERSARIAL.values(), ids=ADVERSARIAL)
every_kind = pytest.mark.parametrize("pairs", [False, True], ids=["cosines", "pairs"])
every_word = pytest.mark.parametrize("bits", [32, 64])


def three_passes(hidden):
    """The same vectors again and again: masks must differ all the same."""
    forward, adjoint = np.ones((WIDTH, 4)) / WIDTH, np.zeros((ROWS, 4))
    return [
        (hidden.product("forward", forward), hidden.product("adjoint", adjoint)) for _ in range(3)
    ]


def received(session: Session, name: str, *steps: str) -> list[np.ndarray]:
    return [
        values
        for step, arrays in session.seen[name].items()
        if not steps or step.split(": ")[1] in steps
        for values in arrays
    ]


@every_data
@every_word
def test_the_helper_sees_uniform_numbers_only(data, bits):
    session = hide(data, three_passes, bits=bits)
    assert session.result is not None
    seen = session.seen["hal"]
    assert sorted(seen) == [
        "ada: masked",
        "ada: sum",
        "sue: phases",
        "tim: corrections",
        "tim: dealt",
    ]
    for step, arrays in seen.items():
        assert p_value(arrays) > THRESHOLD, step
    check_uniform(received(session, "hal"))


@every_data
@every_word
@every_kind
def test_the_label_party_sees_uniform_numbers_until_it_asks(data, bits, pairs):
    session = hide(data, lambda hidden: None, bits=bits, pairs=pairs)
    assert session.result is None
    assert sorted(session.seen["ada"]) == ["hal: difference", "hal: sum"]
    for arrays in session.seen["ada"].values():
        check_uniform(arrays)


@every_data
@every_word
def test_answers_are_masked_values(data, bits):
    """Zero vectors too: an answer is the product under a mask, so to others it is uniform."""
    session = hide(data, three_passes, bits=bits)
    assert session.result is not None
    check_uniform(session.seen["ada"]["hal: answer"])


@every_data
@every_kind
def test_what_the_label_party_keeps_is_uniform(data, pairs):
    session = hide(data, lambda hidden: None, pairs=pairs)
    assert session.result is None
    features = pairs_of(data) if pairs else cosines(data)
    (kept,), (mask,) = (matrices_in(session.parts[name], features.shape) for name in ("ada", "hal"))
    check_uniform([kept, mask])
    np.testing.assert_allclose((kept + mask).view(np.int64) * 2.0**-32, features, rtol=0, atol=1e-4)


@every_data
def test_the_dealer_receives_requests_only(data):
    session = hide(data, three_passes)
    assert session.result is not None
    assert "tim" not in session.seen
    to_dealer = [
        frame
        for frame in session.tape
        if frame.header.receiver == "tim" and frame.header.tag != "agreement"
    ]
    assert {frame.header.tag for frame in to_dealer} == {"hidden/ada/0/request"}
    for frame in to_dealer:
        assert set(frame.payload()) == {"kind", "outputs", "first", "last", "some"}


@every_data
def test_whoever_taps_all_wires_sees_uniform_numbers(data):
    """With the key of one pair more than it should have, too: each frame has its own pad."""
    session = hide(data, three_passes)
    assert session.result is not None
    frames = session.tape.arrays("hidden/")
    assert {frame.dtype for frame in frames} == {np.dtype("uint8"), np.dtype("uint64")}
    check_uniform(frames)


def test_two_runs_on_different_data_are_not_told_apart():
    """Phases that differ by party and cancel in the sum: the same features, the same values."""
    one = draw_phases(ROWS, WIDTH, 7)
    shift = draw_phases(ROWS, WIDTH, 8)["ada"]
    other = one | {"sue": one["sue"] + shift, "hal": one["hal"] - shift}
    first, second = (hide(data, three_passes) for data in (one, other))
    for left, right in zip(first.result, second.result, strict=True):
        for a, b in zip(left, right, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-4)
    for name in ("ada", "hal"):
        for step, arrays in first.seen[name].items():
            check_unrelated(arrays, second.seen[name][step])


@every_word
@pytest.mark.parametrize("parties", [3, 4, 5])
def test_bytes_per_row_and_direction(bits, parties):
    """Two shares of 8 or 5 bytes, w for the difference, and a byte per party but the dealer's."""
    names = ("ada", "hal", "tim", "sue", "zoe")[:parties]
    rows, width = 512, 256
    session = hide(
        draw_phases(rows, width, names=names),
        lambda hidden: None,
        bits=bits,
        roles=type(ROLES)("ada", "hal", "tim", names),
        height=512,
    )
    assert session.result is None
    sent = sum(frame.size for frame in session.tape if frame.header.tag.startswith("hidden/ada/0/"))
    each = sent / (rows * width)
    once = {32: 2 * 5 + 4, 64: 2 * 8 + 8}[bits]
    assert each == pytest.approx(once + parties - 1, abs=0.05)


@every_word
@pytest.mark.parametrize("kind", ["forward", "adjoint"])
def test_bytes_per_pass(bits, kind):
    rows, width = 2000, 300

    def program(hidden):
        hidden.product(kind, np.ones((width if kind == "forward" else rows, 1)) / rows)

    session = hide(draw_phases(rows, width), program, bits=bits, height=2000)
    assert session.result is None
    steps = ("masked", "dealt", "answer", "request")
    passing = [f for f in session.tape if f.header.tag.split("/")[-1] in steps]
    to_helper = sum(f.size for f in passing if f.header.receiver == "hal")
    from_helper = sum(f.size for f in passing if f.header.sender == "hal")
    assert 0 < to_helper <= 9 * (rows + width)
    assert 0 < from_helper <= 9 * (rows + width)
