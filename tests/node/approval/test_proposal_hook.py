"""The owner's command for a job that waits: what it is told, and that it can hold up nothing."""

from __future__ import annotations

import json
import os
import sys
import time

import pytest

from tests.node.alone import alone, kept, proposal
from tests.organisations import RULE, lay_out
from tests.waiting import until
from vertikal.errors import InputError
from vertikal.node.approval import proposal_hook
from vertikal.node.approval.proposal_hook import run_command
from vertikal.node.config.party_file import PartyFile
from vertikal.node.storage.audit_log import read

KEEP = (
    "import os, sys; told = sys.stdin.buffer.read(); "
    "open('told.part', 'wb').write(told); "
    "names = [os.environ[name] for name in ('VERTIKAL_JOB', 'VERTIKAL_SUBMITTER')]; "
    "open('names', 'w').write(' '.join(names)); "
    "open('count', 'a').write('x'); os.rename('told.part', 'told.json')"
)


def with_hook(root, *command):
    """Let the bank's party file name this command."""
    path = root / "bank" / "party.toml"
    path.write_text(f"on_proposal = {json.dumps(command)}\n{path.read_text()}")


def test_the_command_reads_the_job_that_waits(tmp_path):
    lay_out(tmp_path, rows=60)
    with_hook(tmp_path, sys.executable, "-c", KEEP, "$(touch shell)")
    with alone(tmp_path) as (service, said):
        record = kept(service, proposal(tmp_path))
        for _ in range(2):  # the second time it is told already
            service.decisions.automatic.consider(record)
        until((tmp_path / "bank" / "told.json").exists, "told", lambda: str(said))
        told = json.loads((tmp_path / "bank" / "told.json").read_text())
        assert (told["party"], told["job"], told["from"]) == ("bank", record.id, "lender")
        assert told["digest"] == record.digest
        assert "Who learns what" in told["text"]
        assert (tmp_path / "bank" / "names").read_text() == f"{record.id} lender"
        log = service.home.store / "audit.log"
        until(log.exists, "there is a log")
        until(lambda: any(one.event == "owner told" for one in read(log)), "it is in the log")
    assert (tmp_path / "bank" / "count").read_text() == "x"
    assert not (tmp_path / "bank" / "shell").exists()
    assert not record.verdict("bank")


def test_a_job_that_a_rule_decides_is_not_told(tmp_path):
    lay_out(tmp_path, rows=60, policy=RULE)
    with_hook(tmp_path, sys.executable, "-c", KEEP)
    with alone(tmp_path) as (service, _):
        record = kept(service, proposal(tmp_path))
        service.decisions.automatic.consider(record)
        assert record.verdict("bank") == "approve"
    assert not (tmp_path / "bank" / "count").exists()


def test_a_command_that_fails_is_named_with_its_words(tmp_path):
    said = run_command(
        [sys.executable, "-c", "import sys; print('no mail', '\\x1b[2J' * 999); sys.exit(3)"],
        tmp_path,
        {},
        b"{}" * 1_000_000,  # more than a pipe holds, and nobody reads it
    )
    assert said.startswith("ended with code 3: no mail")
    assert len(said) < 400
    assert run_command(["no-such-command"], tmp_path, {}, b"").startswith("cannot run")
    assert run_command([sys.executable, "-c", ""], tmp_path, {}, b"{}") == ""


def test_a_command_that_does_not_end_is_ended_with_its_children(tmp_path, monkeypatch):
    monkeypatch.setattr(proposal_hook, "SECONDS", 1.0)
    code = (
        "import subprocess, sys, time; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
        "open('pid', 'w').write(str(child.pid)); time.sleep(600)"
    )
    began = time.monotonic()
    said = run_command([sys.executable, "-c", code], tmp_path, {}, b"")
    assert said == "took more than 1 s and was ended"
    assert time.monotonic() - began < 20
    child = int((tmp_path / "pid").read_text())
    until(lambda: not _runs(child), "its child has ended")


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_the_passphrase_is_not_handed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("VERTIKAL_PASSPHRASE", "secret")
    code = "import os; open('seen', 'w').write(str('VERTIKAL_PASSPHRASE' in os.environ))"
    run_command([sys.executable, "-c", code], tmp_path, {}, b"")
    assert (tmp_path / "seen").read_text() == "False"
    assert os.environ["VERTIKAL_PASSPHRASE"] == "secret"


def test_an_empty_command_is_refused(tmp_path):
    lay_out(tmp_path, rows=60)
    with_hook(tmp_path, "", "x")
    with pytest.raises(InputError, match="on_proposal"):
        PartyFile.load(tmp_path / "bank" / "party.toml")
