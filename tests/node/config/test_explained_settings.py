"""Every setting of a party file is explained, and found in its line."""

from __future__ import annotations

import json

import msgspec
from click.testing import CliRunner

from vertikal.cli import main
from vertikal.node.config import party_file
from vertikal.node.config.explained_settings import EXPLAINED, explain_settings

FILE = """
name = "bank"
key = "k"
certificate = "c"
federation = "f"
store = "s"

[tables."my people"]
source = "postgresql://user:hunter2@host/db"
query = "SELECT 1"
id = "customer"
features = ["a",
  "b"]

[policy]  # strict
who = ["lender"]

[policy.privacy]
epsilon = 1.0
delta = 1e-6

[[policy.standing]]
who = ["lender"]
algorithms = ["fdskl"]
disclosures = ["values"]

[monitor]
listen = "127.0.0.1:1"
"""


def test_each_has_a_meaning():
    kinds = {
        "": party_file.PartyFile,
        "tables.": party_file.Offer,
        "policy.": party_file.Policy,
        "http.": party_file.Http,
        "monitor.": party_file.Monitor,
        "console.": party_file.ConsoleAddress,
        "log.": party_file.Log,
        "compute.": party_file.Compute,
    }
    sections = {"tables", "policy", "http", "monitor", "console", "log", "compute"}
    names = {
        f"{prefix}{field.name}"
        for prefix, kind in kinds.items()
        for field in msgspec.structs.fields(kind)
    }
    assert set(EXPLAINED) == names - sections


def test_each_is_found_in_its_line_and_no_password_is_told(tmp_path):
    path = tmp_path / "party.toml"
    path.write_text(FILE)
    found = {(one.section, one.name): one for one in explain_settings(path)}
    lines = FILE.splitlines()
    for key, text in {
        ("", "name"): 'name = "bank"',
        ("tables.my people", "id"): 'id = "customer"',
        ("policy", "who"): 'who = ["lender"]',
        ("policy", "privacy"): "[policy.privacy]",
        ("policy", "standing"): "[[policy.standing]]",
        ("monitor", "listen"): 'listen = "127.0.0.1:1"',
    }.items():
        line = found[key].line
        assert line is not None, key
        assert lines[line - 1] == text
    assert found["policy", "most_fits"].line is None
    assert found["tables.my people", "features"].value == "a, b"
    assert found["policy", "privacy"].value == "epsilon: 1.0; delta: 1e-06"
    assert not any("hunter2" in one.value for one in found.values())
    told = CliRunner().invoke(main, ["party", "show", str(path), "--json"]).output
    assert "hunter2" not in told
    assert {one["name"] for one in json.loads(told)} >= {"who", "listen", "source"}
    assert "levels of disclosure that jobs may have" in (
        CliRunner().invoke(main, ["party", "show", str(path)]).output
    )
