"""Classes by their names, several of them, and weights: from the job to the scores."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from tests.node.services import trio
from tests.organisations import RULE, lay_out, write_job
from vertikal.algorithms.kernel_machine.stochastic.validation_curve import auc
from vertikal.cli import main
from vertikal.errors import InputError
from vertikal.node import service

IDS = tuple(str(number) for number in range(1000, 1120))
OPEN = 'disclosure = "open"'
KINDS = ("gold", "plain", "silver")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("classes")
    many = "predictions_per_day = 100000\nmost_questions = 1000\nmost_row_bits = 100000\n" + RULE
    lay_out(root, rows=120, policy=many)
    add_columns(root / "lender")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "BEAT", 0.2)
        with trio(root) as world:
            yield world


def add_columns(folder):
    """Add labels in words to the lender's table, and weights by which the classes are even."""
    with (folder / "people.csv").open() as file:
        rows = list(csv.DictReader(file))
    income = np.argsort(np.argsort([float(row["stated_income"]) for row in rows]))
    common = [row["default"] == "1" for row in rows if row["customer"] in IDS]
    share = sum(common) / len(common)
    for row, place in zip(rows, income, strict=True):
        row["answer"] = "refuse" if row["default"] == "1" else "accept"
        row["kind"] = KINDS[3 * place // len(rows)]
        row |= {f"is_{kind}": int(row["kind"] == kind) for kind in KINDS}
        row["even"] = 0.5 / share if row["default"] == "1" else 0.5 / (1 - share)
    with (folder / "people.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    labels = ["default", "answer", "kind", *(f"is_{kind}" for kind in KINDS)]
    text = (folder / "party.toml").read_text()
    text = text.replace(
        'labels = ["default"]', f'labels = {json.dumps(labels)}\nweights = ["even"]'
    )
    (folder / "party.toml").write_text(text)


def column(world, name):
    with (world.root / "lender" / "people.csv").open() as file:
        return {row["customer"]: row[name] for row in csv.DictReader(file)}


def submit(world, label, settings=OPEN):
    write_job(world.root, directions=32, settings=settings)
    path = world.root / "lender" / "credit.toml"
    path.write_text(path.read_text().replace('label = "default"', label))
    return world.submit()


def scores(world, label, settings=OPEN):
    """Train with this label and score everybody."""
    world.done(submit(world, label, settings).digest)
    return world["lender"].predict("credit", IDS, None, None)


def values(rows):
    return np.array([row["value"] for row in rows])


def test_the_probability_is_that_of_the_positive_class(world, tmp_path):
    accept = scores(world, 'label = "answer"\npositive = "accept"')
    truth = column(world, "answer")
    chances = np.array([row["probability"]["accept"] for row in accept])
    assert all(list(row["probability"]) == ["accept"] for row in accept)
    assert auc(chances, np.array([truth[row["id"]] == "accept" for row in accept])) > 0.65
    said = [row["predicted"] for row in accept]
    assert said == ["accept" if chance > 0.5 else "refuse" for chance in chances]
    facts = world.models("lender").show("credit").facts
    assert (facts["classes"], facts["positive"]) == (["refuse", "accept"], "accept")
    assert "classes" not in world.models("bank").show("credit").facts

    (tmp_path / "ids.csv").write_text("customer\n1000\nnobody\n")
    party = str(world.root / "lender" / "party.toml")
    out = tmp_path / "scores.csv"
    given = ["predict", "credit", "--ids", str(tmp_path / "ids.csv"), "-o", str(out)]
    assert CliRunner().invoke(main, [*given, "--party", party]).exit_code == 0
    with out.open() as file:
        first, nobody = csv.DictReader(file)
    assert list(first) == [
        *("id", "status", "value", "unknown_at"),
        *("probability_accept", "predicted"),
    ]
    assert first["predicted"] == accept[0]["predicted"]
    assert float(first["probability_accept"]) == pytest.approx(chances[0])
    assert (nobody["status"], nobody["probability_accept"], nobody["predicted"]) == (
        "unknown",
        "",
        "",
    )

    # The other class of the same column, which is the default: the same model, seen from behind.
    refuse = scores(world, 'label = "answer"')
    assert list(refuse[0]["probability"]) == ["refuse"]
    np.testing.assert_allclose(values(refuse), -values(accept), atol=1e-2)
    assert [row["predicted"] for row in refuse] == said


@pytest.mark.slow
@pytest.mark.parametrize("level", ["open", "values"])
def test_several_classes_are_each_learned_against_the_rest(world, level):
    settings = OPEN
    if level == "values":
        settings = (
            'disclosure = { name = "values", bits = 64, value_bits = 24, gradient_bits = 24, '
            "prediction_bits = 28, max_passes = 64 }\nmax_iter = 15"
        )
    label = f'label = "kind"\nclasses = {json.dumps(KINDS)}'
    record = submit(world, label, settings)
    shown = world["bank"].answer({"command": "show", "job": world.record("bank", record.digest).id})
    assert "Labels: classes gold, plain, silver" in shown["text"]
    world.done(record.digest)
    found = world["lender"].predict("credit", IDS, None, None)
    truth = column(world, "kind")
    right = [row["predicted"] == truth[row["id"]] for row in found]
    assert np.mean(right) > 0.6
    for row in found:
        assert list(row["value"]) == list(row["probability"]) == list(KINDS)
        assert sum(row["probability"].values()) == pytest.approx(1)
        assert row["predicted"] == max(row["value"], key=row["value"].get)
    if level == "open":
        for kind in KINDS:
            alone = values(scores(world, f'label = "is_{kind}"'))
            np.testing.assert_allclose([row["value"][kind] for row in found], alone, atol=0.05)


@pytest.mark.slow
def test_balanced_classes_are_a_weight_for_each_row(world):
    plain = values(scores(world, 'label = "default"'))
    balanced = values(scores(world, 'label = "default"\nclass_weight = "balanced"'))
    weighed = values(scores(world, 'label = "default"\nweight = "even"'))
    np.testing.assert_allclose(balanced, weighed, atol=1e-6)
    assert np.abs(balanced - plain).max() > 0.3
    factors = scores(world, 'label = "default"\nclass_weight = { "1" = 100.0 }')
    assert np.mean([row["predicted"] == "1" for row in factors]) > np.mean(plain > 0) + 0.3


def test_what_the_table_contradicts_is_refused_before_anybody_hears_of_it(world):
    before = len(world["bank"].book.all())
    for label, said in (
        ('label = "kind"', r'got 3: classes = \["gold", "plain", "silver"\]'),
        ('label = "kind"\nclasses = ["gold", "plain"]', "does not list: 'silver'"),
        ('label = "answer"\npositive = "yes"', "positive of lender must be one of two classes"),
        ('label = "default"\nweight = "age"', "offers no column 'age' .* as weights"),
        ('label = "answer"\nclass_weight = { yes = 2.0 }', "must be of the classes .*, got 'yes'"),
    ):
        with pytest.raises(InputError, match=said):
            submit(world, label)
    assert len(world["bank"].book.all()) == before


FILES = """
algorithm = "{algorithm}"
[settings]
seed = 1
[parties.a]
table = "a.csv"
test = "a.csv"
label = "answer"
{labels}
class_weight = "balanced"
weight = "w"
[parties.b]
table = "b.csv"
test = "b.csv"
"""


@pytest.mark.parametrize(
    ("algorithm", "names"),
    [
        ("fdskl", ("no", "perhaps", "yes")),
        ("admm", ("no", "perhaps", "yes")),
        ("kernel", ("no", "perhaps", "yes")),
        ("avfkam", ("yes", "no")),
    ],
)
def test_every_algorithm_learns_named_and_weighed_classes_from_files(tmp_path, algorithm, names):
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(2, 240, 2))
    places = np.digitize(a[:, 0] + b[:, 0], [-0.6, 0.6] if len(names) == 3 else [0])
    answers = np.array(names)[places]
    lines = [f"{u:.6f},{v:.6f},{w:.3f}" for u, v, w in np.c_[a, draw.uniform(0.5, 1, 240)]]
    told = [f"{line},{answer}\n" for line, answer in zip(lines, answers, strict=True)]
    (tmp_path / "a.csv").write_text("u,v,w,answer\n" + "".join(told))
    (tmp_path / "b.csv").write_text("p,q\n" + "".join(f"{p:.6f},{q:.6f}\n" for p, q in b))
    said = f"classes = {json.dumps(names)}" if len(names) == 3 else 'positive = "no"'
    (tmp_path / "job.toml").write_text(FILES.format(algorithm=algorithm, labels=said))
    out = tmp_path / "out"
    given = ["run", str(tmp_path / "job.toml"), "--mesh", "local", "--out", str(out)]
    done = CliRunner().invoke(main, given)
    assert done.exit_code == 0, done.output
    with (out / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    told = names if len(names) == 3 else names[1:]
    assert [title for title in rows[0] if title.startswith("probability_")] == [
        f"probability_{name}" for name in told
    ]
    assert np.mean([row["predicted"] for row in rows] == answers) > 0.7
