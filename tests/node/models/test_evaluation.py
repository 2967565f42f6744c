"""Stored evaluations: in words, compared, and as a page."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest

from tests.node.shards import shard_of
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.errors import InputError
from vertikal.metrics.measures import measure_classes, measure_numbers
from vertikal.node.models.evaluation import Evaluation
from vertikal.node.models.model_card import card, compare, describe
from vertikal.node.models.model_page import model_page
from vertikal.node.models.store import ModelStore

FACTS = {
    "job": "7f",
    "rows": 300,
    "held_out": 100,
    "algorithm": "fdskl",
    "settings": {"n_components": 64},
    "classes": ["no", "yes"],
    "positive": "yes",
    "columns": ["age", "income"],
    "parties": {
        "bank": {"table": "people", "label": "paid"},
        "shop": {"table": "orders", "columns": ["basket"]},
        "notary": {},
    },
}


def measured(signal, classes=("no", "yes"), seed=0):
    generator = np.random.default_rng(seed)
    places = generator.integers(0, len(classes), 100)
    if len(classes) == 2:
        f = generator.normal(size=(100, 1)) + signal * (2 * places[:, None] - 1)
        chance = 1 / (1 + np.exp(-f))
        chances, predicted = np.hstack([1 - chance, chance]), (f[:, 0] > 0).astype(int)
    else:
        f = generator.normal(size=(100, len(classes))) + signal * np.eye(len(classes))[places]
        chances, predicted = np.exp(f) / np.exp(f).sum(axis=1, keepdims=True), f.argmax(axis=1)
    return measure_classes(f, places, classes, predicted, chances)


def evaluation(signal=2.0, classes=("no", "yes"), **options):
    return Evaluation(
        "at random", 300, "bank", measured(signal, classes), measured(0.1, classes), **options
    )


@pytest.fixture
def models(tmp_path):
    return ModelStore(tmp_path / "models")


def save(models, name="credit", found=None, **facts):
    models.save(name, shard_of(8), FDSKL, evaluation=found, facts={**FACTS, **facts})
    return models.details(name)


def test_an_evaluation_comes_back_and_is_checked(models, tmp_path):
    found = evaluation(contributions={"bank": 0.25, "shop": None})
    _, account, back, _ = save(models, found=found)
    assert back == found
    assert account is None
    path = tmp_path / "models" / "credit" / "1" / "evaluation.json"
    path.write_bytes(path.read_bytes().replace(b"at random", b"at  leasure"))
    with pytest.raises(InputError, match=r"evaluation\.json is not what was stored"):
        models.details("credit")


def test_the_same_shard_has_one_digest_however_good_it_was_found(models):
    first, second = save(models, found=evaluation())[0], save(models, found=evaluation(1.0))[0]
    assert first.digest == second.digest == save(models)[0].digest


def test_the_result_stands_first(models):
    manifest, _, found, _ = save(models, found=evaluation(contributions={"shop": 0.25}))
    lines = describe(manifest, found)
    auc = found.together.numbers["auc"]
    assert lines[0] == (
        "result",
        f"AUC {auc.value:.3f} ({auc.low:.3f} to {auc.high:.3f}) together, "
        f"{found.alone.numbers['auc'].value:.3f} with the columns of bank alone",
    )
    said = dict(lines)
    assert said["rows"] == "300, 100 held out"
    assert said["classes"] == "no, yes; the positive one is yes"
    assert (said["columns"], said["label"]) == ("age, income", "paid")
    assert said["adds"] == "shop: 0.250 of AUC"
    assert [words for title, words in lines if title == "also at"] == [
        "shop: basket of orders",
        "notary: no table",
    ]
    told = card(manifest, found)
    assert msgspec.convert(told["evaluation"], Evaluation) == found
    assert "evaluation" not in card(manifest)


def test_models_are_compared_where_they_differ(models):
    good = save(models, "good", evaluation(2.0))
    bad = save(models, "bad", evaluation(0.2), settings={"n_components": 32})
    rows = {row[0]: row[1:] for row in compare((good[0], good[2]), (bad[0], bad[2]))}
    assert rows["AUC"][2] == rows["log-loss"][2] == "first"
    assert rows["settings.n_components"] == ("64", "32", "")
    assert "rows" not in rows
    turned = {row[0]: row[3] for row in compare((bad[0], bad[2]), (good[0], good[2]))}
    assert turned["AUC"] == turned["log-loss"] == "second"
    same = {row[0]: row[3] for row in compare((bad[0], bad[2]), (bad[0], bad[2]))}
    assert same["AUC"] == "open"
    assert list(dict(compare_titles(good, (bad[0], bad[1], None)))) == ["settings.n_components"]


def compare_titles(first, second):
    return [(row[0], row[1]) for row in compare((first[0], first[2]), (second[0], second[2]))]


def test_the_page_draws_every_curve(models):
    page = model_page(*save(models, found=evaluation(contributions={"bank": 0.2, "shop": -0.01})))
    for title in ("ROC", "Precision and recall", "Calibration", "Gain", "Scores of class yes"):
        assert f"Line chart: {title}." in page
    assert "AUC lost when a party" in page
    assert "bank alone" in page
    assert page.count("<svg") == 6
    # The frames of pages forbid loading anything; no chart refers to anything either.
    assert not re.search(r"(href|src)=\"(?!#)", page)


def test_the_page_of_several_classes_and_of_numbers(models):
    page = model_page(*save(models, found=evaluation(classes=("a", "b", "c"))))
    assert "By class, each against all others" in page
    assert "Scores of class c" in page
    targets = np.arange(20.0)
    numbers = measure_numbers(targets + 1, targets)
    page = model_page(*save(models, found=Evaluation("at random", 80, "bank", numbers, numbers)))
    assert "R² together" in page
    assert "<svg" not in page


def test_a_party_without_labels_has_its_own_part(models):
    page = model_page(*save(models))
    assert "How good it is" not in page
    assert "What left this party" in page
    assert "the shard of" in page
