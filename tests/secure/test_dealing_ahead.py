"""A dealer that works ahead: the run takes its numbers as they lie, and comes out the same."""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext

import numpy as np
import pytest

from tests.conformance.running import run
from tests.secure.hidden.hidden_run import NAMES, ROLES, draw_phases
from tests.secure.sealed.sealed_run import seal, split
from vertikal.errors import MeshError
from vertikal.mesh import local_meshes
from vertikal.secure.dealing_ahead import DealingAhead, Nowhere
from vertikal.secure.hidden.dealing import Dealing, draw_keys
from vertikal.secure.hidden.hidden_features import HiddenBlock, HiddenFeatures
from vertikal.secure.hidden.openings import Limits
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree
from vertikal.secure.sealed.sealed_features import SealedBlock

ROWS, WIDTH = 40, 8
# The dealer has no columns, and brings nothing.
PHASES = draw_phases(ROWS, WIDTH) | {"tim": np.zeros((ROWS, WIDTH), np.uint8)}
AGREED = {"forward": 10, "adjoint": 1, "factors": 1}


class InMemory:
    """A prepared correlation, its arrays in memory."""

    def __init__(self):
        self.keys = draw_keys(ROLES)
        self.arrays = deque()

    def write(self, step, values):
        self.arrays.append((step, values.copy()))

    def take(self, step, shape, dtype):
        kept, values = self.arrays.popleft()
        assert (kept, values.shape, values.dtype) == (step, shape, np.dtype(dtype))
        return values


def program(part):
    part.hold(np.full((ROWS, 1), 3, np.uint64) if part.is_label_party else None)
    results = []
    for i in range(10):
        f = part.drop(part.forward(split(np.full((WIDTH, 1), i << 20), part, i)), 10)
        results.append(part.scale(f))
    part.adjoint(split(np.ones((ROWS, 1)), part))
    return np.array(results)


def prepare():
    correlation = InMemory()
    part = DealingAhead(ROLES, correlation.keys, correlation.write).sealed(
        SealedBlock(ROWS, WIDTH, 8, 1, **AGREED)
    )
    for start in range(0, ROWS, 64):
        here = slice(start, min(start + 64, ROWS))
        part.add(here, np.zeros((here.stop - start, WIDTH), np.uint8))
    program(part)
    return correlation


def test_a_sealed_run_from_a_prepared_correlation():
    correlation = prepare()
    size = len(correlation.arrays)
    session = seal(PHASES, program, prepared={"tim": correlation}, **AGREED)
    live = seal(PHASES, program, **AGREED)
    largest = np.abs(live.total()).max()
    assert largest > 2**30
    # Cosines are rounded by chance, to about three digits.
    np.testing.assert_allclose(session.total(), live.total(), rtol=0, atol=2e-3 * largest)
    assert size > 0
    assert not correlation.arrays
    assert session.parts["tim"].nbytes == 0


def test_the_correlation_is_what_the_dealer_would_send():
    """With the same keys the helper receives the same numbers, one by one."""
    correlation = prepare()
    expected = [values.copy() for _, values in correlation.arrays]
    session = seal(PHASES, program, prepared={"tim": correlation}, **AGREED)
    received = [
        values
        for step, arrays in session.seen["hal"].items()
        if step.startswith("tim: ")
        for values in arrays
    ]
    assert len(received) == len(expected)
    assert {values.tobytes() for values in received} == {values.tobytes() for values in expected}


@pytest.mark.parametrize("pairs", [False, True])
def test_values_from_a_prepared_correlation(pairs):
    correlation = InMemory()
    agreed = HiddenBlock(ROWS, WIDTH, 8, 64, Limits(10, 0, 10), pairs)
    part = DealingAhead(ROLES, correlation.keys, correlation.write).hidden(agreed)
    part.add(slice(0, ROWS), np.zeros((ROWS, WIDTH), np.uint8))
    assert [step for step, _ in correlation.arrays] == ["corrections"] * 2

    def work(mesh):
        keys = agree(mesh, prg.fresh_key(), job="j", version="1", settings_digest="s", rows=1)
        role = mesh.me in ROLES.names
        dealing = (
            Dealing(mesh, keys, ROLES, correlation if mesh.me == "tim" else None) if role else None
        )
        part = HiddenFeatures(mesh, keys, ROLES, dealing, agreed, lambda _: nullcontext())
        part.add(slice(0, ROWS), PHASES[mesh.me].copy())
        if mesh.me == "ada":
            found = part.product("forward", np.ones((agreed.features, 1)))
            part.finish()
            return found
        return part.serve() if role else None

    found = run(local_meshes(NAMES, 20.0), work).unwrap()["ada"]
    total = np.add.reduce(list(PHASES.values()), dtype=np.uint8)
    angles = total * (2 * np.pi / 256)
    features = np.cos(angles) + np.sin(angles) if pairs else np.cos(angles)
    expected = features.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)


def test_nobody_is_there():
    mesh = Nowhere("tim", ("ada", "tim"))
    for act in (lambda: mesh.send("ada", "x", {"a": 1}), lambda: mesh.recv("ada", "x", 1.0)):
        with pytest.raises(MeshError, match="tim: nobody is there while the dealer prepares"):
            act()
    mesh.close()
    mesh.fail("x")
