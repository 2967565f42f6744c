"""The commands of a party's owner, against services inside this process."""

from __future__ import annotations

import json
import socket

import pytest
from click.testing import CliRunner

from tests.node.services import trio
from tests.organisations import RULE, lay_out, write_job
from tests.waiting import until
from vertikal.cli import main
from vertikal.node import service
from vertikal.node.config.federation_file import FederationFile
from vertikal.node.config.invitation import InvitationCode


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(service, "BEAT", 0.2)
    lay_out(tmp_path, rows=60, policy={"bank": RULE, "shop": ""})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    return tmp_path


def vertikal(folder, name, *arguments, code=0):
    party = ("--party", str(folder / name / "party.toml"))
    done = CliRunner().invoke(main, [*arguments, *party])
    assert done.exit_code == code, done.output
    if code:
        assert done.output.splitlines()[-1].startswith("error: ")
    return done.output


@pytest.mark.slow
def test_a_job_by_command(folder):
    file = str(folder / "lender" / "credit.toml")
    with trio(folder) as world:
        checked = vertikal(folder, "lender", "federation", "check").splitlines()
        assert [line.split()[:2] for line in checked[1:]] == [["bank", "ok"], ["shop", "ok"]]
        key = FederationFile.load(folder / "lender" / "federation.toml").member("bank").fingerprint
        assert checked[1].endswith(key)
        assert vertikal(folder, "shop", "job", "list") == "no jobs\n"
        plan = json.loads(vertikal(folder, "lender", "job", "plan", file, "--json"))
        assert plan["rows"] == 100
        assert all(one["bytes_sent"] > 1000 for one in plan["parties"].values())
        assert plan["minutes"]["10 Mb/s"] >= plan["minutes"]["1 Gb/s"] > 0
        assert set(plan["links"]) == {"bank", "shop"}
        assert "Mb/s" in vertikal(folder, "lender", "job", "plan", file)
        told = vertikal(folder, "lender", "job", "submit", file)
        digest = world["lender"].book.all()[0].digest
        job = f"credit-{digest[:4]}"
        assert told == f"job {job}: waits for the approval of bank, shop\n"
        until(lambda: "asks" in vertikal(folder, "shop", "job", "list"), "asked")
        until(lambda: ", signed" in vertikal(folder, "shop", "job", "show", job), "signed")
        assert json.loads(vertikal(folder, "shop", "job", "show", job, "--json"))["job"] == job
        assert "there is no job '1'" in vertikal(folder, "shop", "job", "show", "1", code=1)
        told = vertikal(folder, "shop", "job", "approve", job).splitlines()
        assert told[0] == f"approved credit of lender, digest {digest}"
        assert told[1].startswith(f"job {job}: ")
        told = vertikal(folder, "lender", "job", "watch", digest[:8], "--timeout", "80")
        assert told.endswith(f"job {job}: done\n")
        assert "decided already" in vertikal(folder, "shop", "job", "approve", job, code=1)
        for name in ("bank", "shop"):
            world.wait(name, digest, lambda one: one.done, "done")

        vertikal(folder, "lender", "job", "submit", file, "--name", "other")
        second = world["lender"].book.all()[1].id
        assert second.startswith("other-")
        until(lambda: second in vertikal(folder, "shop", "job", "list"), "asked again")
        vertikal(folder, "shop", "job", "reject", second, "--reason", "not today")
        told = vertikal(folder, "lender", "job", "watch", second, "--timeout", "60", code=1)
        assert "rejected by shop: not today" in told.splitlines()[-1]
        assert "not today" in vertikal(folder, "lender", "job", "show", second)
        listed = json.loads(vertikal(folder, "lender", "job", "list", "--json"))
        assert [one["name"] for one in listed] == ["credit", "other"]

        ids = folder / "new.csv"
        ids.write_text("row,customer\n1,1001\n2,nobody\n")
        arguments = ("predict", "credit", "--ids", str(ids), "--column", "customer")
        out = folder / "scores.csv"
        assert "1 ok, 1 unknown" in vertikal(folder, "lender", *arguments, "-o", str(out))
        assert out.read_text().startswith(
            "id,status,value,unknown_at,probability_1,predicted\n1001,ok,"
        )
        wrong = vertikal(folder, "lender", *arguments, "-o", "scores.txt", code=1)
        assert "--out must be a file that ends in .parquet or .csv" in wrong
        wrong = ("predict", "credit", "--ids", str(ids), "--column", "x", "-o", str(out))
        assert "--column must be one of" in vertikal(folder, "lender", *wrong, code=1)
        world.stop("shop")
        told = vertikal(folder, "lender", *arguments, "-o", str(out), code=1)
        assert "shop is not connected" in told
        done = CliRunner().invoke(
            main, ["federation", "check", "--party", str(folder / "lender" / "party.toml")]
        )
        assert done.exit_code == 1
        assert "shop cannot take part as things are" in done.output


def test_no_service_and_no_party_file(folder, monkeypatch):
    assert "bank has no store yet" in vertikal(folder, "bank", "job", "list", code=1)
    (folder / "bank" / "store").mkdir(mode=0o700)
    assert "does not run" in vertikal(folder, "bank", "job", "list", code=1)
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(main, ["job", "list"])
    assert "this folder must have exactly one party file, got none; name" in done.output
    monkeypatch.chdir(folder / "bank")
    done = CliRunner().invoke(main, ["job", "list"])
    assert "does not run" in done.output
    # A party file that is broken is not absent.
    whole = (folder / "bank" / "party.toml").read_text()
    for broken, said in (
        (whole + "[policy", "party file 'party.toml': "),
        (whole.replace('store = "store"', 'stores = "store"'), "no setting 'stores'"),
        (
            whole.replace("least_rows = 20", "least_rows = 0"),
            "policy.least_rows must be 1 at least",
        ),
    ):
        (folder / "bank" / "party.toml").write_text(broken)
        done = CliRunner().invoke(main, ["job", "list"])
        assert said in done.output, done.output
    (folder / "bank" / "party.toml").write_text(whole)
    monkeypatch.setenv("VERTIKAL_PARTY", str(folder / "gone.toml"))
    done = CliRunner().invoke(main, ["job", "list"])
    assert "party file 'gone.toml' cannot be read" in done.output


def test_invite_and_join(folder):
    entry = CliRunner().invoke(main, ["invite", "lender", "bank", "--at", "127.0.0.1:1"])
    assert "lender.toml is not there; `vertikal keygen lender` makes it" in entry.output
    done = CliRunner().invoke(main, ["invite", "a", "a", "--at", "127.0.0.1:1"])
    assert "distinct names" in done.output
    done = CliRunner().invoke(main, ["join"], input="nonsense\n")
    assert "not one that `vertikal invite` printed" in done.output


def test_nobody_gets_a_code_that_cannot_be_used(tmp_path):
    def invite(*options):
        at = ("--at", "127.0.0.1:0", "--folder", str(tmp_path), "--minutes", "0.05")
        done = CliRunner().invoke(main, ["invite", "lender", "bank", *at, *options])
        assert done.exit_code == 1
        return done.output

    def keygen(*options):
        arguments = ["keygen", "lender", "--folder", str(tmp_path), "--force", *options]
        assert CliRunner().invoke(main, arguments).exit_code == 0

    keygen()
    said = [invite()]
    keygen("--listens", "127.0.0.1:7700")
    (tmp_path / "federation.toml").touch()
    said.append(invite())
    (tmp_path / "federation.toml").unlink()
    key = (tmp_path / "lender.key").read_bytes()
    (tmp_path / "lender.key").write_bytes(b"nonsense")
    said.append(invite())
    (tmp_path / "lender.key").write_bytes(key)
    for output, expected in zip(
        said, ("it must have 'listens'", "is there already", "must hold a private key"), strict=True
    ):
        assert expected in output
        assert "vk1." not in output
    assert "bank: vk1." in invite()


def test_a_code_is_no_argument(folder):
    """Arguments of a process can be read by all users of a machine."""
    done = CliRunner().invoke(main, ["join", "vk1.secret"])
    assert done.exit_code == 1
    assert "the code must not be an argument" in done.output
    assert "vk1.secret" not in done.output


def test_join_sends_nothing_but_the_own_entry(folder):
    """A code that names the party file, made by whoever listens at its address."""
    bank = folder / "bank"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        for name, said in (
            ("party", "entry: Object contains unknown field"),
            ("../bank/party", "file"),
            ("shop", "error: the code is for shop, and shop.toml is not there; enter the code of"),
        ):
            code = InvitationCode(address, "sha256:00", name, bytes(16)).text()
            done = CliRunner().invoke(main, ["join", "--folder", str(bank)], input=code)
            assert done.exit_code == 1
            assert said in done.output
        with pytest.raises(BlockingIOError):
            listening.accept()
