"""Labels in parts, and labels that differ, between services and in `vertikal run`."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from click.testing import CliRunner

from tests.node.services import trio
from tests.organisations import RULE, lay_out, write_job
from vertikal.algorithms.kernel_machine.stochastic.validation_curve import auc
from vertikal.cli import main
from vertikal.node import service

IDS = tuple(str(number) for number in range(1000, 1120))
PARTS = 'disclosure = "open"\nlabel_parts = true'


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("parts")
    many = "predictions_per_day = 100000\nmost_questions = 1000\nmost_row_bits = 100000\n" + RULE
    lay_out(root, rows=120, policy=many, labelled=("lender", "bank"))
    for name in ("lender", "bank"):
        add_columns(root / name, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "BEAT", 0.2)
        with trio(root) as three:
            yield three


def read(folder):
    with (folder / "people.csv").open() as file:
        return list(csv.DictReader(file))


def add_columns(folder, name):
    """Add ``part``, in which some labels are empty, and ``wrong``, which is wrong at the bank."""
    rows = read(folder)
    for row in rows:
        number = int(row["customer"])
        mine = number < 1080 if name == "lender" else number >= 1050
        row["part"] = row["default"] if mine else ""
        # As many as two jobs over the same people must differ by, if they differ.
        flipped = name == "bank" and number in range(1003, 1043, 4)
        row["wrong"] = str(1 - int(row["default"])) if flipped else row["default"]
    with (folder / "people.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    text = (folder / "party.toml").read_text()
    text = text.replace('labels = ["default"]', 'labels = ["default", "part", "wrong"]')
    (folder / "party.toml").write_text(text)


def submit(world, label, settings, classes='classes = ["0", "1"]'):
    write_job(world.root, directions=32, settings=settings, bank='label = "default"')
    path = world.root / "lender" / "credit.toml"
    text = path.read_text().replace('label = "default"', f'label = "{label}"')
    path.write_text(text.replace(f'label = "{label}"', f'label = "{label}"\n{classes}', 1))
    return world.submit()


def scores(world, label, settings):
    world.done(submit(world, label, settings).digest)
    return np.array([one["value"] for one in world["lender"].predict("credit", IDS, None, None)])


@pytest.mark.slow
def test_parts_between_services_give_the_model_of_all_labels(world):
    whole = scores(world, "default", 'disclosure = "open"\ntol = 1e-8')
    parts = scores(world, "part", PARTS + "\ntol = 1e-8")
    np.testing.assert_allclose(parts, whole, atol=1e-3)
    truth = {row["customer"]: row["default"] == "1" for row in read(world.root / "lender")}
    assert auc(parts, np.array([truth[one] for one in IDS])) > 0.65


@pytest.mark.slow
def test_services_say_who_holds_different_labels(world):
    digest = submit(world, "wrong", 'disclosure = "open"').digest
    for name in ("lender", "bank"):
        record = world.wait(name, digest, lambda one: "differ in" in one.note, "an end")
        assert "bank and lender differ in 10 of 120 rows" in record.note


def write_files(folder, label, settings):
    """The tables of lender and bank for `vertikal run`: a hundred people in one order."""
    draw = np.random.default_rng(0)
    u, v = draw.normal(size=(2, 100))
    y = (u * v > 0).astype(int)
    for name, column in (("lender", u), ("bank", v)):
        lines = [f"{x},{cell}" for x, cell in zip(column, label(name, y), strict=True)]
        (folder / f"{name}.csv").write_text("\n".join([f"{name}_x,y", *lines]))
    (folder / "job.toml").write_text(
        f"secret_seed = 1\n[settings]\nn_components = 32\ntol = 1e-8\n{settings}\n"
        '[parties.lender]\ntable = "lender.csv"\ntest = "lender.csv"\nlabel = "y"\n'
        'classes = ["0", "1"]\n'
        '[parties.bank]\ntable = "bank.csv"\ntest = "bank.csv"\nlabel = "y"\n'
    )
    given = ["run", str(folder / "job.toml"), "--mesh", "local", "--out", str(folder / "out")]
    return CliRunner().invoke(main, given)


def in_parts(name, y):
    known = np.arange(100) < 70 if name == "lender" else np.arange(100) >= 40
    return [str(one) if k else "" for one, k in zip(y, known, strict=True)]


def predictions(folder):
    return np.loadtxt(folder / "out" / "predictions.csv", delimiter=",", skiprows=1, usecols=0)


def test_a_run_from_files_with_labels_in_parts(tmp_path):
    found = {}
    for kind, label, settings in (
        ("whole", lambda name, y: y, ""),
        ("parts", in_parts, "label_parts = true"),
    ):
        folder = tmp_path / kind
        folder.mkdir()
        done = write_files(folder, label, settings)
        assert done.exit_code == 0, done.output
        found[kind] = predictions(folder)
    np.testing.assert_allclose(found["parts"], found["whole"], atol=1e-3)


def test_a_run_from_files_says_that_labels_are_missing_or_differ(tmp_path):
    done = write_files(tmp_path, in_parts, "")
    assert done.exit_code == 1
    assert "label of lender: 30 of 100 are missing" in done.output
    done = write_files(tmp_path, lambda name, y: y if name == "lender" else 1 - y, "")
    assert done.exit_code == 1
    assert "bank and lender differ in 100 of 100 rows" in " ".join(done.output.split())
