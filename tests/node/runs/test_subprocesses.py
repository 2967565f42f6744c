"""Processes that are started, listened to and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import msgspec
import pytest

from vertikal.errors import DeadlineExceeded, InputError, MeshError, PeerStopped
from vertikal.node.runs import launch, subprocesses
from vertikal.node.runs.progress import Progress
from vertikal.node.runs.subprocesses import supervise, told_port


def program(text):
    return [sys.executable, "-c", "import json, os, signal, sys, time\n" + text]


def silent(report):
    pass


def line_of(**report):
    return f"print({msgspec.json.encode(report).decode()!r}, flush=True)\n"


def test_reports_are_heard_and_other_lines_are_not():
    heard = []
    text = line_of(party="a", stage="solve") + "print('nonsense', flush=True)\n"
    supervise({"a": program(text), "b": program(line_of(party="b"))}, heard.append)
    assert sorted((one.party, one.stage) for one in heard) == [("a", "solve"), ("b", "starting")]


def test_a_port_is_passed_on_to_the_others():
    heard = []
    tell = line_of(party="a b", port=4711)
    listen = "port, _, name = sys.stdin.readline().strip().partition(' ')\n"
    check = "assert (port, name) == ('4711', 'a b'), (port, name)\n"
    wait = program(listen + check)
    supervise({"a b": program(tell), "c": wait, "d": wait}, heard.append)
    assert [one.port for one in heard] == [4711]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (line_of(party="a", ended="table of a: no such file") + "sys.exit(1)", "a: table of a: no"),
        (line_of(party="a", ended="a: b is gone") + "sys.exit(1)", "a: b is gone"),
        ("print('error: words', file=sys.stderr); sys.exit(1)", "a: words"),
        ("sys.exit(7)", "a: ended with code 7"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "a: its process was ended by signal SIGKILL"),
    ],
)
def test_the_first_cause_is_raised(text, said):
    stopped = line_of(party="b", ended="b: a stopped (x) while b waited") + "sys.exit(1)"
    with pytest.raises(MeshError, match=rf"^{said}"):
        supervise({"a": program(text), "b": program(stopped)}, silent)


def test_who_does_not_end_by_itself_is_ended(monkeypatch):
    monkeypatch.setattr(subprocesses, "GRACE", 0.5)
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    began = time.monotonic()
    with pytest.raises(MeshError, match="a: ended with code 3"):
        supervise(
            {
                "a": program("sys.exit(3)"),
                "b": program(deaf + "time.sleep(300)"),
                "c": program("time.sleep(300)"),
            },
            silent,
        )
    assert time.monotonic() - began < 100.0


def test_an_interruption_ends_all(tmp_path):
    text = f"open({str(tmp_path)!r} + '/' + str(os.getpid()), 'w').close(); time.sleep(300)"

    def interrupt(number, frame):
        raise KeyboardInterrupt

    def when_started():
        until = time.monotonic() + 60.0
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        threading.Thread(target=when_started, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            supervise({"a": program(text), "b": program(text)}, silent)
    finally:
        signal.signal(signal.SIGUSR1, before)
    pids = [int(path.name) for path in tmp_path.iterdir()]
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("stopped_at", [0, 1])
def test_an_interruption_while_they_start_forgets_none(monkeypatch, stopped_at):
    started = []

    class Stopped(subprocess.Popen):
        """The user stops this process while it starts another one."""

        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            started.append(self.pid)
            if len(started) == stopped_at + 1:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)

    monkeypatch.setattr(subprocesses.subprocess, "Popen", Stopped)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            supervise({name: program("time.sleep(300)") for name in "ab"}, silent)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(started) == 2
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_child_stops_when_its_parent_is_gone():
    text = (
        "from vertikal.node.runs.subprocesses import end_with_parent\n"
        "try:\n"
        "    end_with_parent()\n"
        "    print('up', flush=True)\n"
        "    time.sleep(300)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(42)\n"
    )
    child = subprocess.Popen(
        program(text), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "up\n"
    child.stdin.close()
    assert child.wait(60.0) == 42
    child.stdout.close()


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        ("", PeerStopped, "b: a ended before it said where it listens"),
        ("x a\n", PeerStopped, "b: a ended before"),
        ("12 c\n", PeerStopped, "b: a ended before"),
        (None, DeadlineExceeded, "b: nothing about the port of a within 0.2 s"),
    ],
)
def test_a_port_that_is_not_told(monkeypatch, line, kind, said):
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "w") as there:
        monkeypatch.setattr(sys, "stdin", stdin)
        if line is not None:
            there.write(line)
            there.close()
        with pytest.raises(kind, match=said):
            told_port("b", "a", 0.2)


def test_a_port_that_is_told(monkeypatch):
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "w") as there:
        monkeypatch.setattr(sys, "stdin", stdin)
        there.write("4711 a b\n")
        there.flush()
        assert told_port("c", "a b", 20.0) == 4711


def test_ranks_need_mpiexec_and_the_consent_of_root(monkeypatch, tmp_path):
    class Two:
        names = ("a", "b")

    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(InputError, match="needs mpiexec next to this Python"):
        launch.run_ranks(tmp_path / "job.toml", Two(), None, silent)
    (tmp_path / "mpiexec").touch()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in launch.AS_ROOT:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match=r"as root needs OMPI_ALLOW_RUN_AS_ROOT and .* set to 1"):
        launch.run_ranks(tmp_path / "job.toml", Two(), None, silent)


def test_ranks_are_started_under_one_mpiexec(monkeypatch, tmp_path):
    class Two:
        names = ("a", "b")

    seen = []
    (tmp_path / "mpiexec").touch()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(launch, "supervise", lambda commands, tell: seen.append(commands))
    launch.run_ranks(tmp_path / "job.toml", Two(), tmp_path / "out", silent)
    ((name, command),) = seen[0].items()
    assert name == "mpiexec"
    assert command[:3] == [str(tmp_path / "mpiexec"), "-n", "2"]
    assert command[-2:] == ["--out", str(tmp_path / "out")]


def test_a_report_says_how_long_a_stage_still_takes():
    assert Progress("a", done=25, total=100, seconds=2.0).time_left() == 6.0
    assert Progress("a", done=0, total=100, seconds=2.0).time_left() is None
    assert Progress("a", done=5, seconds=2.0).time_left() is None
    assert Progress("a", done=5, total=10, seconds=2.0, ended="done").time_left() is None
