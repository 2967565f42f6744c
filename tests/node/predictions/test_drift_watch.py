"""Drift is told to the owner whose columns have changed, and to nobody else."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tests.node.services import trio
from tests.organisations import RULE, lay_out, write_job
from vertikal.cli import main
from vertikal.data.drift import comparison
from vertikal.node.predictions import drift_watch
from vertikal.node.storage.audit_log import read

pytestmark = pytest.mark.usefixtures("quick_beats")


def drift_of(world, name):
    log = read(world[name].home.store / "audit.log")
    return [str(line.facts["words"]) for line in log if line.event == "drift"]


def in_another_currency(root):
    """Multiply a column of the bank's by a thousand."""
    path = root / "bank" / "people.csv"
    titles, *rows = path.read_text().splitlines()
    place = titles.split(",").index("balance")
    changed = [row.split(",") for row in rows]
    for cells in changed:
        cells[place] = str(1000 + 1000 * abs(float(cells[place])))
    path.write_text("\n".join([titles, *(",".join(cells) for cells in changed)]) + "\n")


def test_people_who_are_scored_from_the_table_of_training_are_looked_at_by_themselves(
    tmp_path, monkeypatch
):
    lay_out(tmp_path, rows=240, policy={"bank": RULE, "shop": RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    monkeypatch.setattr(drift_watch, "FEWEST_PEOPLE", 20)
    path = tmp_path / "bank" / "people.csv"
    with trio(tmp_path) as world:
        world.done(world.submit().digest)
        titles, *rows = path.read_text().splitlines()
        place = titles.split(",").index("balance")
        low = sorted(rows, key=lambda row: float(row.split(",")[place]))[:30]
        low_ids = tuple(row.split(",")[0] for row in low)
        all_ids = tuple(row.split(",")[0] for row in rows)
        world["lender"].predict("credit", all_ids, None, None)
        world["lender"].predict("credit", low_ids[:10], None, None)
        assert drift_of(world, "bank") == []
        world["lender"].predict("credit", low_ids, None, None)
        (told,) = [words for words in drift_of(world, "bank") if "balance" in words]
        assert told.startswith("model credit, table people, people scored, column balance: ")
        assert drift_of(world, "shop") == []
    party = ["--party", str(tmp_path / "bank" / "party.toml")]
    listed = CliRunner().invoke(main, ["model", "drift", "credit", *party]).stdout
    assert "people, people scored" in listed
    only = (
        CliRunner().invoke(main, ["model", "drift", "credit", "--table", "people", *party]).stdout
    )
    assert only == "no drift: people as in training\n"


def test_the_owner_hears_of_drift_and_nobody_else(tmp_path, monkeypatch):
    lay_out(tmp_path, rows=240, policy={"bank": RULE, "shop": RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        world.done(world.submit().digest)
        lender = world["lender"]
        assert lender.predict("credit", ("1001",), None, None)[0]["status"] == "ok"
        assert drift_of(world, "bank") == []
        in_another_currency(tmp_path)
        for _ in range(2):
            assert lender.predict("credit", ("1001",), None, None)[0]["status"] == "ok"
        told = drift_of(world, "bank")
        assert len(told) == 2  # once, though it was asked twice
        assert told[0].startswith("model credit, table people, column balance: ")
        assert "outside the range of training" in told[0]
        assert f"drift: {told[0]}" in world.said["bank"]
        for name in ("lender", "shop"):
            assert drift_of(world, name) == []
            assert not [line for line in world.said[name] if "drift" in line or "balance" in line]
        # A comparison that fails is no reason to refuse a score.
        monkeypatch.setattr(drift_watch, "compare", lambda *arguments: 1 / 0)
        (tmp_path / "bank" / "people.csv").touch()
        assert lender.predict("credit", ("1001",), None, None)[0]["status"] == "ok"
        assert any("drift of table people: ZeroDivision" in line for line in world.said["bank"])
    monkeypatch.undo()

    def command(*arguments):
        party = ["--party", str(tmp_path / "bank" / "party.toml")]
        return CliRunner().invoke(main, ["model", *arguments, *party])

    shown = command("show", "credit").stdout
    assert "drift        people, column balance: " in shown
    assert "drift" not in command("show", "credit", "--json").stdout
    listed = command("drift", "credit").stdout
    assert listed.splitlines()[0].split() == ["table", "column", "since", "training"]
    assert "its distribution has moved" in listed
    found = json.loads(command("drift", "credit", "--table", "people", "--json").stdout)
    assert {one["what"] for one in found["people"]} == {"range", "distribution"}
    assert "--table must be one whose people" in command("drift", "credit", "--table", "x").stderr
    monkeypatch.setattr(comparison, "MOVED", 1e9)
    monkeypatch.setattr(comparison, "BEYOND", 1.0)
    assert command("drift", "credit").stdout == "no drift: people as in training\n"
