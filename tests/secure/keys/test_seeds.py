"""Seeds: the same at both ends, each once, bound to their use."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from tests.conformance.uniformity import check_uniform, check_unrelated
from vertikal.errors import PadReused
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.keys.seeds import SeedSequence

KEY = bytes(range(32))
ADA, HAL = PairKeys("ada", "job", {"hal": KEY}), PairKeys("hal", "job", {"ada": KEY})


def test_both_ends_grow_the_same_arrays_each_once():
    one, other = SeedSequence(ADA, "hal", "use"), SeedSequence(HAL, "ada", "use")
    first, second = one.take((40, 3), np.uint64), one.take((40, 3), np.uint64)
    assert np.array_equal(first, other.take((40, 3), np.uint64))
    filled = np.empty((40, 3), np.uint64)
    other.fill(filled)
    assert np.array_equal(second, filled)
    assert not np.array_equal(first, second)
    assert one.take((0, 3), np.uint8).shape == (0, 3)


def test_another_purpose_is_another_stream():
    taken = [
        SeedSequence(ADA, "hal", *purpose).take((2048,), np.uint64)
        for purpose in [("a",), ("b",), ("a", "b"), ("ab",)]
    ]
    check_uniform(taken)
    check_unrelated(taken[:2], taken[2:])


@pytest.mark.parametrize("attempt", [copy.copy, copy.deepcopy, pickle.dumps])
def test_seeds_cannot_be_copied(attempt):
    with pytest.raises(PadReused, match="a sequence of seeds cannot be copied"):
        attempt(SeedSequence(ADA, "hal", "use"))
