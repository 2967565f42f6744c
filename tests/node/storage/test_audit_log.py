"""The audit log: appended only, and any change to it is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import msgspec
import pytest

from vertikal.errors import DiskFull, InputError, LogTampered
from vertikal.node.storage import audit_log
from vertikal.node.storage.audit_log import AuditLog, Head, read, verify

EVENTS = [
    ("job", {"job": "7", "from_": "lender", "digest": "ab" * 32}),
    ("approval", {"job": "7", "by": "owner"}),
    ("messages", {"job": "7", "bytes": {"phases": 1200, "agreement": 80}}),
    ("refusal", {"job": "8", "why": "columns not offered: ['salary']"}),
    ("end", {"job": "7", "seconds": 3.5, "parties": ["bank", "größe"], "ok": True, "left": None}),
]


@pytest.fixture
def path(tmp_path):
    log = AuditLog(tmp_path / "audit.log", "bank")
    for event, facts in EVENTS:
        log.record(event, **facts)
    return tmp_path / "audit.log"


def lines_of(path):
    return path.read_text().splitlines(keepends=True)


def test_what_is_recorded_is_read(path):
    assert [(line.event, line.facts) for line in read(path)] == EVENTS
    assert [line.number for line in read(path)] == [1, 2, 3, 4, 5]
    assert {line.party for line in read(path)} == {"bank"}
    head = verify(path)
    assert head.number == 5
    assert verify(path, head) == head


def test_only_its_owner_can_read_it(path):
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.with_name("audit.log.head").stat().st_mode & 0o777 == 0o600


def test_an_empty_log(tmp_path):
    (tmp_path / "audit.log").touch()
    assert verify(tmp_path / "audit.log") == Head(0, audit_log.FIRST)
    with pytest.raises(InputError, match=r"audit log 'gone\.log' cannot be read: No such file"):
        verify(tmp_path / "gone.log")


def change(field, value):
    def apply(lines):
        content = json.loads(lines[2])
        content[field] = value
        lines[2] = json.dumps(content) + "\n"

    return apply


def forge(lines):
    """A line altered together with its digest: the next one does not follow any more."""
    line = msgspec.json.decode(lines[2], type=audit_log.Line)
    forged = msgspec.structs.replace(line, facts={"job": "9"}).with_digest()
    lines[2] = msgspec.json.encode(forged).decode() + "\n"


def swap(lines):
    lines[1], lines[2] = lines[2], lines[1]


TAMPERINGS = {
    "facts": (change("facts", {"job": "7", "bytes": {"phases": 12}}), "line 3 was altered"),
    "event": (change("event", "nothing"), "line 3 was altered"),
    "time": (change("time", "1999-01-01"), "line 3 was altered"),
    "party": (change("party", "shop"), "line 3 was altered"),
    "number": (change("number", 4), "line 3 has the number 4: lines are missing or moved"),
    "previous": (change("previous", "0" * 64), "line 3 does not follow"),
    "digest": (change("digest", "0" * 64), "line 3 was altered"),
    "forged": (forge, "line 4 does not follow"),
    "taken out": (lambda lines: lines.pop(1), "line 2 has the number 3"),
    "first taken out": (lambda lines: lines.pop(0), "line 1 has the number 2"),
    "put in": (lambda lines: lines.insert(1, lines[1]), "line 3 has the number 2"),
    "moved": (swap, "line 2 has the number 3"),
    "nonsense": (lambda lines: lines.insert(1, "hello\n"), "line 2 is no line of a log"),
    "more fields": (change("more", 1), "line 3 is no line of a log"),
    "cut": (lambda lines: lines.pop(), "ends at line 4, its head file knows 5"),
    "cut in a line": (
        lambda lines: lines.append(lines.pop()[:-20]),
        "ends at line 4, its head file knows 5",
    ),
}


@pytest.mark.parametrize("how", TAMPERINGS)
def test_tampering_is_found(path, how):
    tamper, said = TAMPERINGS[how]
    lines = lines_of(path)
    tamper(lines)
    path.write_text("".join(lines))
    with pytest.raises(LogTampered, match=said):
        verify(path)


def test_every_byte_counts(path):
    raw = path.read_bytes()
    for place in range(0, len(raw), 7):
        changed = bytearray(raw)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(LogTampered):
            verify(path)


def test_a_cut_end_shows_against_a_head_that_somebody_keeps(path):
    """A cut of both log and head file is found by a head of another day, and only so."""
    head = verify(path)
    lines = lines_of(path)
    path.write_text("".join(lines[:3]))
    path.with_name("audit.log.head").unlink()
    assert verify(path).number == 3
    with pytest.raises(LogTampered, match="ends at line 3, before the given head: lines were cut"):
        verify(path, head)


def test_a_log_written_anew_shows_against_a_head(path, tmp_path):
    head = verify(path)
    path.unlink()
    log = AuditLog(path, "bank")
    for _ in range(9):
        log.record("nothing")
    assert verify(path).number == 9
    with pytest.raises(LogTampered, match="line 5 is not the line of the given head"):
        verify(path, head)


def test_an_older_head_still_fits_a_longer_log(path):
    head = verify(path)
    AuditLog(path, "bank").record("job", job="9")
    assert verify(path, head).number == 6


@pytest.mark.parametrize("text", ["", "5", "x:" + "0" * 64, "5:" + "z" * 64, "5:00"])
def test_heads_that_are_none(text):
    with pytest.raises(InputError, match="head must be NUMBER:DIGEST"):
        Head.parse(text)
    assert str(Head.parse(f"5:{'a' * 64}")) == f"5:{'a' * 64}"


def test_a_crash_in_the_middle_of_a_line_is_mended(path):
    lines = lines_of(path)
    path.write_text("".join(lines) + '{"number":6,"time":"20')
    AuditLog(path, "bank").record("start")
    assert verify(path).number == 6
    assert [line.event for line in read(path)][-1] == "start"


def test_a_crash_in_the_first_line(tmp_path):
    (tmp_path / "audit.log").write_text('{"numb')
    AuditLog(tmp_path / "audit.log", "bank").record("start")
    assert verify(tmp_path / "audit.log").number == 1


def test_a_log_that_grows_while_it_is_verified(path, monkeypatch):
    """A running service writes on, and its head file moves with it."""
    original = audit_log.read

    def overtaken(*arguments):
        yield from original(*arguments)
        AuditLog(path, "bank").record("start")

    monkeypatch.setattr(audit_log, "read", overtaken)
    assert verify(path).number == 5
    assert verify(path).number == 6


def test_a_line_that_is_being_written_is_not_judged(path):
    with path.open("a") as file:
        file.write('{"number":6,"time":"20')
    assert verify(path).number == 5
    assert len(list(read(path))) == 5
    # One that was finished once is missed.
    path.write_text("".join(lines_of(path)[:4]) + lines_of(path)[4][:-9])
    with pytest.raises(LogTampered, match="ends at line 4, its head file knows 5"):
        verify(path)


def test_a_line_longer_than_one_look(path):
    log = AuditLog(path, "bank")
    log.record("long", words=["x" * 9000])
    log.record("after")
    assert verify(path).number == 7


def test_a_log_whose_last_line_is_none_takes_no_more(path):
    path.write_text(path.read_text() + "nonsense\n")
    with pytest.raises(LogTampered, match="last line is no line of a log"):
        AuditLog(path, "bank").record("start")


@pytest.mark.parametrize("room", [0, 10])
def test_a_full_disk_is_said(path, monkeypatch, room):
    """Also one that takes half a line: what is there stays a log."""
    original = os.write

    def full(number, raw):
        if not room:
            raise OSError(28, "No space left on device")
        return original(number, raw[:room])

    with monkeypatch.context() as patch:
        patch.setattr(audit_log.os, "write", full)
        with pytest.raises(DiskFull, match="full"):
            AuditLog(path, "bank").record("start")
    assert verify(path).number == 5
    AuditLog(path, "bank").record("start")
    assert verify(path).number == 6


def test_threads_and_processes_write_one_chain(tmp_path):
    path = tmp_path / "audit.log"
    program = (
        "import sys; from pathlib import Path\n"
        "from vertikal.node.storage.audit_log import AuditLog\n"
        "log = AuditLog(Path(sys.argv[1]), 'bank')\n"
        "for n in range(20): log.record('process', n=n)"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], cwd=os.getcwd())

    def write():
        log = AuditLog(path, "bank")
        for number in range(20):
            log.record("thread", n=number)

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
    assert process.wait(200) == 0
    assert verify(path).number == 80
    for kind in ("thread", "process"):
        assert sum(line.event == kind for line in read(path)) in (20, 60)
