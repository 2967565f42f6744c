"""Predictions by the names of their classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from vertikal.algorithms.catalogue import algorithm_named
from vertikal.node.models.score_reading import ScoreReading, flat

NAN = float("nan")


def reading(classes, algorithm="fdskl", threshold=0.0, **settings):
    known = algorithm_named(algorithm)
    outputs = len(classes) if len(classes) > 2 else 1
    read = known.read_settings(settings, ("a", "b"), ("a",), outputs)
    return ScoreReading(known, read, classes, threshold)


def test_two_classes():
    found = reading(("no", "yes")).records(np.array([[0.5], [-1.0], [NAN]]))
    assert found == [
        {"value": 0.5, "probability": {"yes": pytest.approx(expit(0.5))}, "predicted": "yes"},
        {"value": -1.0, "probability": {"yes": pytest.approx(expit(-1.0))}, "predicted": "no"},
        {"value": None, "probability": {"yes": None}, "predicted": None},
    ]
    assert flat(found[2]) == {"value": None, "probability_yes": None, "predicted": None}


def test_several_classes_add_up_to_one():
    f = np.array([[1.0, -2.0, 3.0], [-9.0, -9.0, -8.0], [NAN, NAN, NAN]])
    found = reading(("a", "b", "c"), loss="square").records(f)
    assert found[0]["probability"] == {"a": 0.5, "b": 0.0, "c": 0.5}
    assert [one["predicted"] for one in found] == ["c", "c", None]
    # The loss says that the second is of no class: then all are alike.
    assert set(found[1]["probability"].values()) == {1 / 3}
    assert list(flat(found[0])) == [
        *("value_a", "value_b", "value_c"),
        *("probability_a", "probability_b", "probability_c", "predicted"),
    ]


def test_the_threshold_of_the_shard_decides_and_some_losses_have_no_probability():
    found = reading(("no", "yes"), threshold=1.0, loss="smooth_hinge")
    assert found.records(np.array([[0.5], [1.5]])) == [
        {"value": 0.5, "predicted": "no"},
        {"value": 1.5, "predicted": "yes"},
    ]


def test_a_regression_has_values_only():
    found = reading((), loss="square", regression=True)
    assert found.records(np.array([[0.25]])) == [{"value": 0.25}]


def test_a_model_stored_without_names_has_its_classes_in_order():
    known = algorithm_named("admm")
    settings = known.read_settings({}, ("a", "b"), ("a",))
    (one,) = ScoreReading.of(known, settings, None, ()).records(np.array([[2.0]]))
    assert one["predicted"] == "second class"


def test_a_prediction_of_several_classes_opens_as_many_numbers():
    known = algorithm_named("fdskl")
    two, three = (
        known.exposure(
            known.read_settings({"disclosure": "values"}, ("a", "b", "c"), ("a",), outputs)
        ).prediction_bits
        for outputs in (1, 3)
    )
    assert three == 3 * two > 0
