"""Sums without masks: right, and readable by whoever receives them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.meshes import taped
from tests.conformance.running import run
from vertikal.errors import InputError
from vertikal.secure.sums.open_sum import OpenSum

NAMES = ("a", "b", "c")
VALUES = {"a": 5, "b": 2**64 - 3, "c": 7}


def test_the_sum_wraps_and_every_summand_is_seen():
    def program(mesh):
        summation = OpenSum(mesh, NAMES, "test")
        return [summation.sum(np.array([VALUES[mesh.me]], np.uint64), to) for to in ("b", "a", "b")]

    with taped(NAMES, deadline=60.0) as (ends, tape):
        results = run(ends, program).unwrap()
    assert [int(total[0]) for total in results["b"] if total is not None] == [9, 9]
    assert [total is None for total in results["c"]] == [True] * 3
    seen = {int(frame[0]) for frame in tape.arrays("open/test/", sender="c")}
    assert seen == {7}


def test_only_ring_elements_are_summed():
    with (
        taped(("a",), deadline=60.0) as (ends, _),
        pytest.raises(InputError, match="ring elements"),
    ):
        OpenSum(ends["a"], ("a",), "test").sum(np.zeros(2), "a")
