"""The views of all roles of a sealed run: uniform numbers, and the predictions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.conformance.uniformity import THRESHOLD, check_uniform, check_unrelated, p_value
from tests.secure.hidden.hidden_run import NAMES, ROLES, draw_phases
from tests.secure.hidden.test_views import ADVERSARIAL
from tests.secure.kept import matrices_in
from tests.secure.sealed.sealed_run import Session, kept, seal
from vertikal.secure.sealed.sealed_features import MATRIX_BITS

ROWS, WIDTH = 192, 64
ROUNDS = 6
every_data = pytest.mark.parametrize("data", ADVERSARIAL.values(), ids=ADVERSARIAL)

AGREED = {
    "forward": ROUNDS,
    "adjoint": ROUNDS,
    "factors": 4,
    "outputs": 4,
    "reveals": True,
}
EXPECTED = {
    "ada": {
        "hal: sum",
        "hal: difference",
        "hal: masked forward",
        "hal: masked adjoint",
        "hal: rounding",
        "hal: scaled",
        "hal: reveal",
    },
    "hal": {
        "sue: phases",
        "ada: sum",
        "ada: difference",
        "ada: factors",
        "ada: masked forward",
        "ada: masked adjoint",
        "ada: rounding",
        "tim: corrections",
        "tim: dealt forward",
        "tim: dealt adjoint",
        "tim: rounded",
        "tim: scaled",
    },
}
"""All that anybody receives, but for keys of the dealer's."""


def rounds(labels=0.0, weights=1.0):
    """The same zero vectors again and again: masks must differ all the same."""

    def program(part):
        factors = np.full((ROWS, 4), round(weights * 2**16)).astype(np.int64).view(np.uint64)
        part.hold(factors if part.is_label_party else None)
        v = np.zeros((WIDTH, 4), np.uint64)
        for _ in range(ROUNDS):
            f = part.drop(part.forward(v), MATRIX_BITS)
            if part.is_label_party:
                f = f - np.array(round(labels * 2**20), np.int64).astype(np.uint64)
            r = part.drop(part.scale(f), 16)
            v = v + part.drop(part.adjoint(r), MATRIX_BITS + 14)
        return part.reveal(f)

    return program


def run(data, **options) -> Session:
    session = seal(data, rounds(**options), **AGREED)
    assert set(session.outcome.unwrap()) == set(NAMES)
    return session


@every_data
@pytest.mark.parametrize("name", EXPECTED)
def test_a_role_sees_uniform_numbers_only(data, name):
    """Even what is revealed is a share: uniform but for what the label party adds to it."""
    seen = run(data).seen[name]
    assert set(seen) == EXPECTED[name]
    for step, arrays in seen.items():
        assert p_value(arrays) > THRESHOLD, step
    check_uniform([values for arrays in seen.values() for values in arrays])


@every_data
def test_the_dealer_receives_nothing(data):
    session = run(data)
    assert "tim" not in session.seen
    assert "sue" not in session.seen
    to_dealer = {f.header.tag for f in session.tape if f.header.receiver == "tim"}
    assert to_dealer == {"agreement"}


@every_data
def test_what_a_role_keeps_is_uniform(data):
    session = run(data)
    (dealers,) = matrices_in(session.parts["tim"], (ROWS, WIDTH))
    for matrix in (*kept(session), dealers):
        check_uniform([matrix])


@every_data
def test_whoever_taps_all_wires_sees_uniform_numbers(data):
    frames = [f for f in run(data).tape if f.header.tag.startswith("hidden/")]
    assert all(frame.header.kind == "array" for frame in frames)
    check_uniform([frame.payload() for frame in frames])


def transcript(session: Session) -> Counter:
    """Sender, receiver, step and size of every message."""
    return Counter(
        (f.header.sender, f.header.receiver, f.header.tag, f.header.shape) for f in session.tape
    )


def test_all_runs_have_the_same_messages():
    """In number, order of steps and size: neither data nor labels nor weights show in them."""
    runs = [
        run(ADVERSARIAL["all zero"]),
        run(ADVERSARIAL["drawn"], labels=1.0),
        run(ADVERSARIAL["equal rows"], labels=-1.0, weights=5.0),
    ]
    assert transcript(runs[0]) == transcript(runs[1]) == transcript(runs[2])


def test_two_runs_on_different_data_with_the_same_outputs_are_not_told_apart():
    """Phases that differ by party and cancel in the sum: the same features, the same results."""
    one = draw_phases(ROWS, WIDTH, 7)
    shift = draw_phases(ROWS, WIDTH, 8)["ada"]
    other = one | {"sue": one["sue"] + shift, "hal": one["hal"] - shift}
    first, second = run(one, labels=0.5), run(other, labels=0.5)
    opened = [s.outcome.results["ada"].view(np.int64) for s in (first, second)]
    assert np.abs(opened[0]).max() > 2**18
    # The rounding of each run is its own, and accumulates.
    np.testing.assert_allclose(*opened, rtol=0, atol=2**12)
    assert transcript(first) == transcript(second)
    for name in EXPECTED:
        for step, arrays in first.seen[name].items():
            check_unrelated(arrays, second.seen[name][step])


def test_the_same_labels_and_other_labels_are_not_told_apart_by_the_helper():
    data = ADVERSARIAL["drawn"]
    for other in (run(data, labels=1.0), run(data, labels=-1.0)):
        same = run(data, labels=1.0)
        for step, arrays in same.seen["hal"].items():
            check_unrelated(arrays, other.seen["hal"][step])


def test_bytes_per_row_and_direction():
    """2w for the correlation, w each way for the difference, a byte per party but the dealer."""
    rows, width = 512, 256
    session = seal(draw_phases(rows, width), lambda part: None, height=512)
    assert session.outcome.unwrap()["ada"] is None
    sent = sum(frame.size for frame in session.tape if frame.header.tag.startswith("hidden/"))
    assert sent / (rows * width) == pytest.approx(4 * 8 + len(ROLES.parties) - 1, abs=0.05)
