"""A stored model in words: what its owner reads first, and what two models have in common."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.metrics.measures import measure_classes
from vertikal.node.models.evaluation import Evaluation
from vertikal.node.models.model_card import compare, describe
from vertikal.node.models.store import Manifest

DIGEST = "7f3a" + 60 * "0"


def manifest(**facts):
    return Manifest(1, "credit", 2, "lender", "Shard", "2026-01-01", "0.1.0", facts, {})


def parts(label):
    return {"lender": {"table": "people", "label": label}, "bank": {"table": "accounts"}}


def evaluation(classes, shift=0.0):
    """Measure made-up scores, the better the larger ``shift`` is."""
    generator = np.random.default_rng(0)
    places = generator.integers(0, len(classes), 200)
    f = shift * (places[:, None] == np.arange(len(classes)))
    f = f + generator.normal(size=f.shape)
    predicted = f.argmax(axis=1)
    if len(classes) == 2:
        f = f[:, 1:] - f[:, :1]
    found = measure_classes(f, places, classes, predicted, None, 20)
    return Evaluation("at random", 1800, "lender", found, found)


def test_values_are_written_to_be_read():
    facts = {
        "job": DIGEST,
        "attempt": 1,
        "algorithm": "fdskl",
        "bandwidth": 2.674068315931153,
        "rows": 2558,
        "held_out": 1639,
        "settings": {"regression": True, "alpha": 1e-05},
    }
    lines = dict(describe(manifest(**facts), None))
    assert lines["job"] == f"credit-7f3a, digest {DIGEST}"
    assert (lines["bandwidth"], lines["rows"]) == ("2.67407", "2,558, 1,639 held out")
    assert lines["settings"] == "regression = true, alpha = 1e-05"
    assert "kind" not in lines
    # A run without services has no id, and a shard that was saved by hand no algorithm.
    lines = dict(describe(manifest(job=DIGEST), None))
    assert (lines["job"], lines["kind"]) == (DIGEST, "Shard")


def test_several_classes_have_a_line_each():
    words = [
        text
        for title, text in describe(manifest(), evaluation(("gold", "silver", "none")))
        if title == "class"
    ]
    assert [text.split()[0] for text in words] == ["gold", "silver", "none"]
    assert "against the others: AUC 0." in words[0]
    assert not [
        title for title, _ in describe(manifest(), evaluation(("0", "1"))) if title == "class"
    ]


@pytest.mark.parametrize(
    ("label", "classes", "alike"),
    [
        ("default", ("0", "1"), True),
        ("default", ("1", "0"), True),
        ("fraud", ("0", "1"), False),
        ("default", ("no", "yes"), False),
    ],
)
def test_only_models_of_the_same_thing_are_better_or_worse(label, classes, alike):
    good, bad = evaluation(("0", "1"), 3.0), evaluation(("0", "1"), 0.0)
    first = manifest(parties=parts("default"), classes=["0", "1"]), good
    second = manifest(parties=parts(label), classes=list(classes)), bad
    rows = {title: tuple(rest) for title, *rest in compare(first, second)}
    assert rows["AUC"][2] == ("first" if alike else "")
    assert ("predicts" in rows) is not alike
    if label == "fraud":
        assert rows["predicts"] == ("default: 0, 1", "fraud: 0, 1", "not comparable")
