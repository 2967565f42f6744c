"""Drift: each kind is seen and named without a cell, and chance alone is not taken for it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from vertikal.data.drift.comparison import compare, stability_index
from vertikal.data.drift.profile import learn_profile
from vertikal.data.preparation import learn_preparation
from vertikal.data.sources import open_source


def frame(rows, seed, shift=0.0, missing=0.0, words=("a", "b", "c"), shares=None):
    draw = np.random.default_rng(seed)
    number = draw.normal(shift, 1, rows)
    number[draw.random(rows) < missing] = np.nan
    spike = np.where(draw.random(rows) < 0.7, 0, draw.exponential(1, rows))
    return pd.DataFrame({"n": number, "spike": spike, "word": draw.choice(words, rows, p=shares)})


def profile_of(content):
    source = open_source("bank", content)
    preparation, _ = learn_preparation(source, list(content.columns), missing="mean")
    return learn_profile(source, preparation)


TRAINED = profile_of(frame(2000, 0))


def drift(content, profile=TRAINED):
    return {
        (one.column, one.what): one.words for one in compare(profile, open_source("b", content))
    }


def test_rows_of_the_same_kind_are_no_drift():
    """Of 3 × 400 columns of small and large tables chance may pass for drift in a few."""
    found = [
        len(drift(frame(rows, seed), profile_of(frame(trained, 1000 + seed))))
        for trained in (60, 1000)
        for rows in (10, 40, 400, 4000)
        for seed in range(50)
    ]
    assert sum(found) <= 6


@pytest.mark.parametrize(
    ("change", "expected", "words"),
    [
        ({"shift": 1.0}, ("n", "distribution"), r"its distribution has moved \(index 0\.\d+\)"),
        ({"shift": 9.0}, ("n", "range"), r"100.0% of its cells are outside the range of training"),
        (
            {"missing": 0.3},
            ("n", "missing"),
            r"\d\d.\d% of its cells are missing, 0.0% in training",
        ),
        ({"words": ("a", "b", "x")}, ("word", "categories"), "categories that training did not"),
        ({"shares": (0.9, 0.05, 0.05)}, ("word", "distribution"), "its distribution has moved"),
    ],
)
def test_each_kind_of_drift(change, expected, words):
    found = drift(frame(400, 1, **change))
    assert expected in found
    assert pd.Series([found[expected]]).str.contains(words).all(), found
    assert {column for column, _ in found} == {expected[0]}


def test_a_change_of_type_is_told_without_a_cell():
    changed = frame(100, 1)
    changed["n"] = changed["n"].map("{:.3f} kg".format)
    assert drift(changed) == {("n", "type"): "it has text, and training had numbers"}


def test_a_column_that_was_often_missing_and_is_there_now():
    trained = profile_of(frame(1000, 0, missing=0.5))
    assert list(drift(frame(400, 1), trained)) == [("n", "missing")]
    assert drift(frame(400, 1, missing=0.5), trained) == {}


def test_a_few_odd_cells_are_no_drift():
    """Two people beyond the range, or of a new category, are two people."""
    content = frame(150, 1)
    content.loc[:1, "n"], content.loc[:1, "word"] = 99.0, "x"
    assert drift(content) == {}
    content.loc[2, "word"] = "x"
    assert list(drift(content)) == [("word", "categories")]


def test_the_index_by_hand():
    p, q = np.array([50.5, 50.5]) / 101, np.array([80.5, 20.5]) / 101
    expected = sum((q[i] - p[i]) * np.log(q[i] / p[i]) for i in range(2))
    assert stability_index((50, 50), (80, 20)) == pytest.approx(expected)
    assert stability_index((5, 5), (500, 500)) == pytest.approx(0.0)
