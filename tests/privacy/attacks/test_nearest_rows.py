from __future__ import annotations

import numpy as np
import pytest

from vertikal.errors import InputError
from vertikal.privacy.attacks.nearest_rows import nearest_rows, right_matches

ROWS, COLUMNS = 600, 8
GENERATOR = np.random.default_rng(0)
RECORDS = GENERATOR.normal(size=(ROWS, COLUMNS))
# Rows are people in another order than the list of candidates.
ORDER = GENERATOR.permutation(ROWS)
ANCHORS = np.arange(100)


def match(held):
    found = nearest_rows(held, RECORDS, ANCHORS, ORDER[ANCHORS])
    return right_matches(found[100:], RECORDS, ORDER[100:])


def test_linear_mixtures_name_their_rows():
    mixed = RECORDS[ORDER] @ GENERATOR.normal(size=(COLUMNS, 30))
    assert match(mixed) == 1.0
    assert match(mixed + 0.1 * GENERATOR.normal(size=mixed.shape)) > 0.95


def test_numbers_that_say_nothing_are_not_trusted():
    mixed = RECORDS[ORDER] @ GENERATOR.normal(size=(COLUMNS, 30))
    noise = 100 * GENERATOR.normal(size=(ROWS, 30))
    assert match(np.concatenate((noise, mixed), axis=1)) > 0.95


def test_noise_is_matched_by_chance():
    assert match(GENERATOR.normal(size=(ROWS, 30))) < 0.02
    assert match(np.empty((ROWS, 0))) < 0.02


def test_equal_records_are_as_good_as_each_other():
    records = np.zeros((4, 2))
    assert right_matches(np.array([3, 2]), records, np.array([0, 1])) == 1.0


def test_too_few_anchors_are_refused():
    with pytest.raises(InputError, match="anchors must be pairs, 10 at least, got 9"):
        nearest_rows(RECORDS, RECORDS, ANCHORS[:9], ANCHORS[:9])
    with pytest.raises(InputError, match="anchors must be pairs"):
        nearest_rows(RECORDS, RECORDS, ANCHORS[:20], ANCHORS[:19])
