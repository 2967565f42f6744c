"""The console as a server: one at a time, links for one that runs, and its end."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner

from tests.organisations import lay_out
from vertikal.cli import main
from vertikal.client.connection import Connection
from vertikal.console.child import ConsoleChild
from vertikal.console.server import ConsolePlace, ConsoleServer
from vertikal.console.sessions import VIEWER
from vertikal.errors import InputError
from vertikal.node.backup.archive import write_backup
from vertikal.node.config.party_file import ConsoleAddress, PartyFile
from vertikal.node.storage.audit_log import read


@pytest.fixture
def bank(tmp_path):
    lay_out(tmp_path, rows=20, names=("lender", "bank"))
    (tmp_path / "bank" / "store").mkdir(mode=0o700)
    return Connection.to(tmp_path / "bank" / "party.toml")


@pytest.fixture
def served(bank):
    server = ConsoleServer(bank)
    yield server, server.start()
    server.stop()


def status_of(url, cookie=""):
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers={"Cookie": cookie}), timeout=30
        ) as answer:
            return answer.status, answer.headers.get("set-cookie", "")
    except urllib.error.HTTPError as error:
        return error.code, ""


def test_a_link_opens_it_over_a_real_socket(bank, served):
    server, origin = served
    assert origin.startswith("http://127.0.0.1:")
    assert status_of(f"{origin}/")[0] == 401
    status, cookie = status_of(server.place.link(origin, VIEWER))
    assert status == 200
    # The service does not run: the page says so.
    assert status_of(f"{origin}/", cookie.partition(";")[0])[0] == 503
    assert status_of(f"{origin}/audit", cookie.partition(";")[0])[0] == 200
    (line,) = read(bank.store / "audit.log")
    assert (line.event, line.facts) == ("console session", {"role": "viewer"})


def test_there_is_one_at_a_time_and_commands_find_it(bank, served):
    _, origin = served
    with pytest.raises(InputError, match="runs already"):
        ConsoleServer(bank)
    party = ["--party", str(bank.file)]
    shown = CliRunner().invoke(main, ["console", "--viewer", "--no-open", *party])
    assert shown.output.startswith(f"console (viewer)  {origin}/enter?token=")
    told = json.loads(CliRunner().invoke(main, ["console", "--json", *party]).output)
    assert told["role"] == "approver"
    assert status_of(told["link"])[0] == 200
    ended = CliRunner().invoke(main, ["console", "--sign-out", *party])
    assert ended.output == "1 session ended\n"
    assert status_of(shown.output.split()[-1])[0] == 401
    wrong = CliRunner().invoke(main, ["console", "--listen", "127.0.0.1:1", *party])
    assert "runs already, at" in wrong.output


def test_it_listens_on_loopback_only(bank):
    wrong = CliRunner().invoke(
        main, ["console", "--listen", "0.0.0.0:8601", "--party", str(bank.file)]
    )
    assert wrong.exit_code == 1
    assert "0.0.0.0:8601" in wrong.output


def test_a_socket_serves_a_proxy(bank):
    settings = ConsoleAddress("unix:console.sock", "https://console.bank.example")
    server = ConsoleServer(bank, settings)
    try:
        assert server.start() == "https://console.bank.example"
        path = bank.file.parent / "console.sock"
        assert path.stat().st_mode & 0o777 == 0o600
        for host, status in (("console.bank.example", b"401"), ("127.0.0.1", b"403")):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(30)
                connection.connect(str(path))
                connection.sendall(
                    f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
                )
                assert connection.recv(12).split()[1] == status
    finally:
        server.stop()
    assert ConsolePlace.of(bank).running() is None


def test_sessions_are_not_backed_up(bank, tmp_path):
    place = ConsolePlace.of(bank)
    place.sessions.make_link(VIEWER)
    (bank.store / "kept").write_text("kept")
    write_backup(bank.file, tmp_path / "bank.backup", None)
    with tarfile.open(tmp_path / "bank.backup") as archive:
        names = archive.getnames()
    assert "store/kept" in names
    assert not any("console" in name for name in names)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('listen = "0.0.0.0:1"', "0.0.0.0:1"),
        ('listen = "unix:console.sock"', "console.origin"),
        ('listen = "127.0.0.1:1"\norigin = "console.example"', "console.origin"),
        ('listen = "127.0.0.1:1"\norigin = "https://a.example/x"', "console.origin"),
    ],
)
def test_a_wrong_address_is_refused(bank, text, wrong):
    path = bank.file
    path.write_text(f"{path.read_text()}\n[console]\n{text}\n")
    with pytest.raises(InputError, match=wrong):
        PartyFile.load(path)


@pytest.mark.slow
def test_the_child_ends_with_its_parent(bank):
    said = []
    child = ConsoleChild(bank.file, said.append)
    child.start()
    try:
        from tests.waiting import until

        until(lambda: ConsolePlace.of(bank).running() is not None, "the console runs")
        until(lambda: said, "it says where")
        assert said[0].startswith("console: served at http://127.0.0.1:")
    finally:
        child.stop()
    assert ConsolePlace.of(bank).running() is None


@pytest.mark.slow
def test_the_command_serves_until_it_is_stopped(bank):
    with subprocess.Popen(
        [sys.executable, "-m", "vertikal", "console", "--no-open", "--party", str(bank.file)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        link = process.stdout.readline().split()[-1]
        assert status_of(link)[0] == 200
        process.terminate()
        assert process.wait(30) == 0
