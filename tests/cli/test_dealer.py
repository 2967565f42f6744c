"""Errors of `vertikal dealer` when it cannot do what it was asked."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from vertikal.cli import main

JOB = """
[settings]
n_components = 32
bandwidth = 2.0
loss = "square"
max_iter = 3
disclosure = { name = "sealed", dealer = "notary" }
[parties.notary]
rows = 150
[parties.bank]
table = "bank.csv"
label = "y"
[parties.shop]
table = "shop.csv"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def arguments(folder, name):
    return [
        *(str(folder / "job.toml"), name),
        *("--federation", str(folder / "federation.toml")),
        *("--key", str(folder / f"{name}.key"), "--certificate", str(folder / f"{name}.crt")),
    ]


def command(*words):
    return CliRunner().invoke(main, words)


def test_prepare_says_what_it_made(folder):
    done = command("dealer", "prepare", str(folder / "job.toml"), "--out", str(folder / "c"))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("correlation  c (")
    assert (folder / "c").stat().st_size > 150 * 32 * 16


@pytest.mark.parametrize(
    ("change", "words", "said_"),
    [
        (("", ""), ("join", "bank"), "NAME must be the dealer of this job, got 'bank'"),
        (
            ("[parties.notary]\nrows = 150\n", ""),
            ("prepare",),
            "dealer must be a party without labels, one of ['shop'], got 'notary'",
        ),
        (
            (', dealer = "notary"', ""),
            ("prepare",),
            "table of notary must be named: only the dealer of hidden phases has none",
        ),
        (("rows = 150", 'table = "shop.csv"'), ("prepare",), "of this job has a table, so its"),
        (
            ("rows = 150", "rows = 1"),
            ("prepare",),
            "notary]: rows must be a whole number from 2",
        ),
        (("rows = 150", ""), ("prepare",), "rows of notary must be given: how many the others"),
        (
            ("rows = 150", 'rows = 150\ntable = "shop.csv"'),
            ("prepare",),
            "rows of notary must be left out: it names a table, got 150",
        ),
        (
            ("rows = 150", 'rows = 150\ncolumns = ["u"]'),
            ("prepare",),
            "columns and test of notary must be left out: it has no table",
        ),
        (
            ('disclosure = { name = "sealed", dealer = "notary" }', ""),
            ("prepare",),
            "table of notary must be named",
        ),
    ],
)
def test_what_a_dealer_is_told(folder, change, words, said_):
    (folder / "job.toml").write_text(JOB.replace(*change))
    verb, *name = words
    rest = (
        arguments(folder, name[0])
        if name
        else [str(folder / "job.toml"), "--out", str(folder / "c")]
    )
    done = command("dealer", verb, *rest)
    assert done.exit_code == 1
    assert said_ in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (folder / "c").exists()


def test_two_parties_without_a_dealer_are_told_what_to_do(folder):
    text = JOB.replace("[parties.notary]\nrows = 150\n", "").replace(', dealer = "notary"', "")
    (folder / "job.toml").write_text(text)
    done = command("run", str(folder / "job.toml"), "--mesh", "local")
    assert done.exit_code == 1
    assert "disclosure='sealed' needs two parties without labels, a helper and a dealer" in (
        done.stderr
    )
    assert "name a dealer that has no columns" in done.stderr


def test_a_run_from_files_says_that_a_dealer_needs_its_rows(folder):
    (folder / "job.toml").write_text(JOB.replace("rows = 150", ""))
    done = command("run", str(folder / "job.toml"), "--mesh", "local")
    assert done.exit_code == 1
    assert "rows of notary must be given where no service tells it" in done.stderr


def test_a_dealer_with_a_table_has_nothing_prepared(folder):
    text = JOB.replace("rows = 150", 'table = "notary.csv"')
    (folder / "job.toml").write_text(text)
    done = command("dealer", "join", *arguments(folder, "notary"), "--correlation", "c")
    assert done.exit_code == 1
    assert "--correlation must be left out by a dealer with a table" in done.stderr
