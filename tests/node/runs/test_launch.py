"""Processes under one supervisor: whose failure ends the others, and whose does not."""

from __future__ import annotations

import sys

import pytest

from vertikal.errors import MeshError
from vertikal.node.runs.launch import supervise

GOOD = [sys.executable, "-c", "pass"]
BAD = [sys.executable, "-c", "import sys; sys.exit('error: out of memory')"]


def test_when_all_end_well_nobody_is_missing():
    assert supervise({"a": GOOD, "b": GOOD}, print) == ()


def test_a_failure_is_named():
    with pytest.raises(MeshError, match=r"^b: out of memory$"):
        supervise({"a": GOOD, "b": BAD}, print)


def test_without_a_dispensable_one_the_others_finish():
    assert supervise({"a": GOOD, "b": BAD, "c": GOOD}, print, ("a", "b")) == ("b",)


@pytest.mark.parametrize("dispensable", [("b",), ("a",)])
def test_without_the_last_dispensable_one_they_do_not(dispensable):
    with pytest.raises(MeshError, match="out of memory"):
        supervise({"a": GOOD, "b": BAD}, print, dispensable)
