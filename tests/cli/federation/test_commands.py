"""`vertikal federation verify`: digits to compare, and what is remembered of it."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from tests.node.alone import alone, proposal
from tests.node.alone import kept as keep
from tests.organisations import lay_out, write_job
from vertikal.cli import main
from vertikal.cli.federation import commands
from vertikal.node.config.federation_file import FederationFile
from vertikal.node.storage.audit_log import read


@pytest.fixture
def folder(tmp_path):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    return tmp_path


def vertikal(folder, name, *arguments, code=0, **options):
    party = ("--party", str(folder / name / "party.toml"))
    done = CliRunner().invoke(main, [*arguments, *party], **options)
    assert done.exit_code == code, done.output
    return done.output


def pairs(folder, name):
    told = json.loads(vertikal(folder, name, "federation", "verify", "--json"))
    return {one["name"]: one for one in told}


def test_both_parties_see_the_same_digits_before_a_service_ran(folder):
    bank, shop = pairs(folder, "bank"), pairs(folder, "shop")
    assert bank["shop"]["digits"] == shop["bank"]["digits"]
    assert bank["lender"]["digits"] != bank["shop"]["digits"]
    assert [one["compared"] for one in bank.values()] == [None, None]


def test_a_false_key_gives_other_digits(folder):
    """The attack: the inviting party writes shop a file with a false bank."""
    before = pairs(folder, "bank")["shop"]["digits"]
    lay_out(folder / "false", rows=60)
    false = FederationFile.load(folder / "false" / "bank" / "federation.toml").member("bank")
    path = folder / "shop" / "federation.toml"
    true = FederationFile.load(path).member("bank")
    text = path.read_text().replace(true.certificate.strip(), false.certificate.strip())
    path.write_text(text.replace(true.fingerprint, false.fingerprint))
    assert pairs(folder, "shop")["bank"]["digits"] != before


def test_a_comparison_is_remembered_and_logged(folder):
    told = vertikal(folder, "bank", "federation", "verify", "shop", "--compared").splitlines()
    assert told[0].split() == ["party", "safety", "digits", "compared"]
    assert told[1].split()[-1].startswith("20")
    assert pairs(folder, "bank")["shop"]["compared"] is not None
    assert pairs(folder, "bank")["lender"]["compared"] is None
    (line,) = read(folder / "bank" / "store" / "audit.log")
    members = FederationFile.load(folder / "bank" / "federation.toml")
    assert line.event == "keys compared"
    assert line.facts == {
        "peer": "shop",
        "mine": members.member("bank").fingerprint,
        "theirs": members.member("shop").fingerprint,
    }


@pytest.mark.parametrize(("answer", "kept"), [("y\n", True), ("n\n", False)])
def test_on_a_terminal_the_owner_is_asked(folder, monkeypatch, answer, kept):
    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(commands, "sys", terminal)
    told = vertikal(folder, "bank", "federation", "verify", "shop", input=answer)
    assert "Does the owner of shop read the same digits?" in told
    assert (pairs(folder, "bank")["shop"]["compared"] is not None) == kept


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--compared",), "--compared needs the NAME"),
        (("zoe",), "'zoe' is not in the federation file"),
        (("bank", "--compared"), "NAME must be another party of the federation"),
    ],
)
def test_what_cannot_be_compared(folder, arguments, said):
    told = vertikal(folder, "bank", "federation", "verify", *arguments, code=1)
    assert told.startswith("error: ")
    assert said in told


def test_start_show_and_log_say_what_was_not_compared(folder):
    vertikal(folder, "bank", "federation", "verify", "lender", "--compared")
    with alone(folder) as (service, said):
        service.start()
        assert any(line.startswith("keys not compared with shop: ") for line in said)
        job = keep(service, proposal(folder)).id
        assert (
            "  not compared with shop: whoever"
            in service.answer({"command": "show", "job": job})["text"]
        )
        service.decisions.approve(job)
        vertikal(folder, "bank", "federation", "verify", "shop", "--compared")
        assert (
            "  you have compared yours" in service.answer({"command": "show", "job": job})["text"]
        )
    lines = list(read(folder / "bank" / "store" / "audit.log"))
    noted = {line.event: line.facts.get("not_compared") for line in lines}
    assert noted["started"] == ["shop"]
    assert noted["approve"] == ["shop"]


def test_changes_by_command(folder):
    with alone(folder, "shop") as (service, _):
        service.start()
        told = vertikal(folder, "shop", "federation", "rotate", code=1)
        assert "error: lender, bank cannot hear of a new key now" in told
        told = vertikal(folder, "shop", "federation", "rotate", "--anyway", "--days", "60")
        new = told.removeprefix("new key  ").strip()
        assert service.home.identity.certificate.fingerprint == new
    with alone(folder) as (service, _):
        service.start()
        told = vertikal(folder, "bank", "federation", "changes")
        assert told == "federation of lender, bank, shop; serial 0\n"
        file = str(folder / "shop" / "federation.toml")
        told = vertikal(folder, "bank", "federation", "update", file).splitlines()
        assert told[0] == "federation of lender, bank, shop; serial 1"
        assert f"holds: shop has the key {new} in place of sha256:" in told[1]
        told = vertikal(folder, "bank", "federation", "remove", "shop").splitlines()
        digest, _, words = told[-1].partition("  ")
        assert words == (
            "proposed: shop removed, proposed by bank, signed by bank; not signed by lender"
        )
        told = json.loads(vertikal(folder, "bank", "federation", "changes", "--json"))
        assert [one["state"] for one in told["changes"]] == ["holds", "proposed"]
        assert told["changes"][1]["digest"].startswith(digest)
    with alone(folder, "lender") as (service, _):
        service.start()
        vertikal(folder, "lender", "federation", "update", str(folder / "bank" / "federation.toml"))
        told = vertikal(folder, "lender", "federation", "accept", digest).splitlines()
        assert told[0] == "federation of lender, bank; serial 2"
