"""Health, metrics and logs of a service: true, on loopback, and with nothing of anybody's data."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from tests.node.alone import alone, kept, proposal
from tests.node.services import trio
from tests.organisations import RULE, lay_out, write_job
from vertikal.cli import main
from vertikal.errors import InputError
from vertikal.node.config.party_file import Log, PartyFile
from vertikal.node.monitoring.health import LATE, health_of
from vertikal.node.monitoring.metrics import exposition
from vertikal.node.monitoring.service_log import ServiceLog
from vertikal.node.storage.disclosure_account import Balance, Opening

MONITOR = '[monitor]\nlisten = "127.0.0.1:0"\n'


class Stub:
    """A service of which everything can be said."""

    me = "bank"
    store = Path()
    beat_age = 0.5
    disk_full = False
    row_bits_limit = 1000

    def __init__(self):
        self.peers = {"lender": True, "shop": False}

    def peers_up(self):
        return self.peers

    def job_states(self):
        return Counter({"runs": 1, "done": 3})

    def events(self):
        return {"done": 3, "refused": 1}

    def balances(self):
        opening = Opening("7", "credit", "accounts", "lender", "values", 500, 50, 6)
        return [Balance("accounts", "lender", (opening,))]


def test_absent_peers_are_named_and_no_fault():
    well, told = health_of(Stub())
    assert well
    assert told["status"] == "ok"
    assert told["peers"] == {"lender": "connected", "shop": "away"}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("beat_age", LATE + 1, "no beat for 16 s"), ("disk_full", True, "the disk of the store")],
)
def test_a_service_that_is_stuck_or_has_no_room_is_failing(name, value, words):
    stub = Stub()
    setattr(stub, name, value)
    well, told = health_of(stub)
    assert not well
    assert told["status"] == "failing"
    assert told["faults"][0].startswith(words)


def families(text):
    return {one.name: one for one in text_string_to_metric_families(text)}


def sample(text, name, **labels):
    """The one value under this name and these labels."""
    (found,) = [
        one.value
        for family in families(text).values()
        for one in family.samples
        if one.name == name and one.labels == labels
    ]
    return found


def test_metrics_are_those_of_the_service():
    text = exposition(Stub())[0].decode()
    assert sample(text, "vertikal_peer_up", peer="lender") == 1
    assert sample(text, "vertikal_peer_up", peer="shop") == 0
    assert sample(text, "vertikal_jobs", state="done") == 3
    assert sample(text, "vertikal_jobs", state="ended") == 0
    assert sample(text, "vertikal_events_total", event="refused") == 1
    bits = sample(text, "vertikal_disclosed_row_bits", table="accounts", receiver="lender")
    assert bits == 50 * 6
    assert sample(text, "vertikal_disclosed_row_bits_limit") == 1000
    assert sample(text, "vertikal_store_free_bytes") > 0
    assert sample(text, "process_cpu_seconds_total") > 0


def fetch(port, path):
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.status, answer.read().decode()


def port_of(said):
    (found,) = [
        re.search(r"health and metrics are served at http port (\d+)", one)
        for one in said
        if "health and metrics" in one
    ]
    return int(found[1])


def test_a_service_serves_both(tmp_path, quick_beats, monkeypatch):
    lay_out(tmp_path, rows=60, policy={"bank": RULE + MONITOR, "shop": RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        world.done(world.submit().digest)
        port = port_of(world.said["bank"])
        status, health = fetch(port, "/health")
        assert (status, json.loads(health)["status"]) == (200, "ok")
        assert json.loads(health)["peers"] == {"lender": "connected", "shop": "connected"}
        _, text = fetch(port, "/metrics")
        assert sample(text, "vertikal_jobs", state="done") == 1
        assert sample(text, "vertikal_events_total", event="approve") == 1
        assert sample(text, "vertikal_peer_up", peer="lender") == 1
        columns = world["bank"].home.file.tables["people"].features
        assert not any(one in text for one in columns)
        with pytest.raises(HTTPError, match="404"):
            fetch(port, "/predict")
        command = ["party", "health", str(tmp_path / "bank" / "party.toml")]
        shown = CliRunner().invoke(main, command)
        assert shown.exit_code == 0
        assert shown.output.splitlines()[1:] == ["lender: connected", "shop: connected"]
        monkeypatch.setattr(world["bank"].home, "has_room", lambda: False)
        world["bank"].home.room.full = True
        with pytest.raises(HTTPError, match="503"):
            fetch(port, "/health")
        shown = CliRunner().invoke(main, command)
        assert shown.exit_code == 1
        assert "bank is failing" in shown.output
        assert "error: the disk of the store is full" in shown.output


def test_jobs_are_counted_by_state(tmp_path):
    lay_out(tmp_path, rows=60)
    with alone(tmp_path) as (bank, _):
        record = kept(bank, proposal(tmp_path))
        assert bank.view.job_states() == {"waits for the owner": 1}
        bank.decisions.reject(record.id, "no")
        assert bank.view.job_states() == {"ended": 1}
        assert bank.view.beat_age < 60


@pytest.mark.parametrize("listen", ["0.0.0.0:9000", "example.org:9000", "9000"])
def test_it_listens_on_loopback_only(tmp_path, listen):
    lay_out(tmp_path, rows=60, policy=f'[monitor]\nlisten = "{listen}"\n')
    with pytest.raises(InputError, match=r"loopback|host:port"):
        PartyFile.load(tmp_path / "bank" / "party.toml")


def test_lines_have_dates_and_files_are_rotated(tmp_path, capsys):
    log = ServiceLog("bank", tmp_path, Log(output="json", file="s.log", most_bytes=4096, keep=2))
    for number in range(200):
        log.say(f'line {number} with "quotes"')
    log.close()
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["words"] for one in shown] == [f'line {n} with "quotes"' for n in range(200)]
    when = datetime.fromisoformat(shown[0]["time"])
    assert abs(datetime.now(UTC) - when) < timedelta(minutes=5)
    assert shown[0]["party"] == "bank"
    files = sorted(tmp_path.iterdir())
    assert [one.name for one in files] == ["s.log", "s.log.1", "s.log.2"]
    for file in files:
        assert file.stat().st_size <= 4096
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    newest = [json.loads(line)["words"] for line in files[0].read_text().splitlines()]
    assert newest[-1] == 'line 199 with "quotes"'


def test_text_is_for_a_terminal(tmp_path, capsys):
    ServiceLog("bank", tmp_path, Log()).say("bank is ready")
    assert re.fullmatch(r"\d\d:\d\d:\d\d bank is ready\n", capsys.readouterr().out)
    assert not list(tmp_path.iterdir())


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path, capsys):
    with pytest.raises(InputError, match=r"\[log\] file 'absent/s.log' cannot be written"):
        ServiceLog("bank", tmp_path, Log(file="absent/s.log"))
    (tmp_path / "full").symlink_to("/dev/full")
    log = ServiceLog("bank", tmp_path, Log(file="full"))
    log.say("still here")
    log.close()
    assert "still here" in capsys.readouterr().out


@pytest.mark.parametrize("line", ['output = "xml"', "most_bytes = 1", "keep = 0"])
def test_settings_of_the_log_are_checked(tmp_path, line):
    lay_out(tmp_path, rows=60, policy=f"[log]\n{line}\n")
    with pytest.raises(InputError, match=r"log\."):
        PartyFile.load(tmp_path / "bank" / "party.toml")


def test_words_that_nobody_reads_do_no_harm(tmp_path, monkeypatch):
    say = ServiceLog("bank", tmp_path, Log()).say
    read, write = os.pipe()
    os.close(read)
    pipe = os.fdopen(write, "w")
    monkeypatch.setattr(sys, "stdout", pipe)
    say("hello")
    monkeypatch.undo()
    with pytest.raises(BrokenPipeError):
        pipe.close()
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    say("hello")
