"""The check of a party file."""

from __future__ import annotations

import json

from click.testing import CliRunner

from tests.organisations import lay_out
from vertikal.cli import main


def check(path, *options):
    return CliRunner().invoke(main, ["party", "check", str(path), *options])


def test_a_party_is_checked_without_its_service(tmp_path):
    lay_out(tmp_path, rows=60)
    path = tmp_path / "bank" / "party.toml"
    done = check(path)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == ["table   rows  state", "people   100  ok"]
    assert CliRunner().invoke(main, ["party", "check", "--party", str(path)]).output == done.output
    table = tmp_path / "bank" / "people.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines, lines[1]]))
    done = check(path)
    assert done.exit_code == 1
    assert "people: ids of bank: of 101, 1 rows repeat the id of an earlier row" in done.output
    assert done.output.splitlines()[-1] == (
        "error: party file 'party.toml': jobs cannot use people as things are"
    )
    (found,) = json.loads(check(path, "--json").output.splitlines()[0])
    assert (found["table"], len(found["problems"])) == ("people", 1)
    path.write_text(path.read_text().replace('key = "bank.key"', 'key = "gone.key"'))
    assert "key file 'gone.key'" in check(path).output
