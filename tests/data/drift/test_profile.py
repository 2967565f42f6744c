"""Profiles of training rows: counts between tenths, categories, missing cells."""

from __future__ import annotations

import msgspec
import numpy as np
import pandas as pd
import pytest

from vertikal.data.drift import profile as module
from vertikal.data.drift.profile import CategoryProfile, NumberProfile, Profile, learn_profile
from vertikal.data.preparation import learn_preparation
from vertikal.data.sources import open_source

FRAME = pd.DataFrame(
    {
        "n": [*map(float, range(1, 20)), None],
        "spike": [0.0] * 15 + [1.0, 2.0, 3.0, 4.0, 5.0],
        "word": ["a", "b"] * 9 + [None, "a"],
    }
)


def learned(frame=FRAME, rows=None):
    source = open_source("bank", frame)
    preparation, _ = learn_preparation(source, list(frame.columns), rows=rows, missing="mean")
    return learn_profile(source, preparation, rows)


def test_a_profile_by_hand():
    number, spike, word = learned().columns
    assert number == NumberProfile(
        "n", 1, 1.0, 10.0, 19.0, (2, 4, 6, 8, 10, 12, 14, 16, 18), (2,) * 9 + (1,)
    )
    assert spike.edges == (0.0, 1.0, 3.0)
    assert spike.counts == (15, 1, 2, 2)
    assert word == CategoryProfile("word", 1, {"a": 10, "b": 9})
    assert (number.rows, word.rows) == (19, 19)


def test_only_the_rows_of_training_count():
    number = learned(rows=np.array([5, 3, 4, 15, 16])).columns[0]
    assert (number.low, number.high, number.rows) == (4.0, 17.0, 5)


def test_a_profile_survives_being_written():
    found = learned()
    assert msgspec.json.decode(msgspec.json.encode(found), type=Profile) == found


def test_numbers_of_a_csv_file_are_those_of_a_frame(tmp_path):
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    source = open_source("bank", tmp_path / "x.csv")
    preparation, _ = learn_preparation(source, list(FRAME.columns), missing="mean")
    assert learn_profile(source, preparation) == learned()


def test_of_a_long_table_evenly_spaced_rows_are_looked_at(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 10)
    number = learned(pd.DataFrame({"n": np.arange(95) * 0.5})).columns[0]
    assert number.rows == 10
    assert number.high == pytest.approx(45.0)
