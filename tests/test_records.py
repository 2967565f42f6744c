"""Records of a type that several threads meet for the first time at once."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import msgspec
import pytest

from vertikal.records import convert, from_json, from_msgpack, msgpack_reader


class Inner(msgspec.Struct, frozen=True):
    number: int


class Outer(msgspec.Struct, frozen=True):
    name: str
    inner: Inner


PLAIN = {"name": "a", "inner": {"number": 1}}


def test_records_from_values_and_bytes():
    wanted = Outer("a", Inner(1))
    packed = msgspec.msgpack.encode(wanted)
    assert convert(PLAIN, Outer) == wanted
    assert from_json(msgspec.json.encode(wanted), Outer) == wanted
    assert from_msgpack(packed, Outer) == msgpack_reader(Outer)(packed) == wanted


def test_hooks_and_keys_reach_msgspec():
    assert convert({"1": 2}, dict[int, int], str_keys=True) == {1: 2}
    assert convert("1+2j", complex, dec_hook=lambda kind, text: kind(text)) == 1 + 2j
    packed = msgspec.msgpack.encode("1+2j")
    assert from_msgpack(packed, complex, dec_hook=lambda kind, text: kind(text)) == 1 + 2j


def test_what_does_not_fit_is_refused():
    with pytest.raises(msgspec.ValidationError, match="missing required field `inner`"):
        convert({"name": "a"}, Outer)


# Fresh types in each turn, and threads that take turns as often as they can. Without the lock this
# ends the process within a few of them.
RACE = """
import sys, threading
from vertikal.records import convert, from_json, msgpack_reader

sys.setswitchinterval(1e-6)
TEXT = "from dataclasses import dataclass\\n" + "".join(
    f"@dataclass\\nclass N{k}:\\n    a: int\\n    b: dict[str, float] | None = None\\n"
    for k in range(6)
) + "@dataclass\\nclass Top:\\n" + "".join(f"    n{k}: N{k}\\n" for k in range(6))
VALUE = {f"n{k}": {"a": k} for k in range(6)}
JSON = "{" + ", ".join(f'"n{k}": {{"a": {k}}}' for k in range(6)) + "}"

for _ in range(60):
    names = {}
    exec(TEXT, names)
    top, gate, made = names["Top"], threading.Barrier(4), []

    def read(how):
        gate.wait(20)
        made.append(how())

    works = [lambda: convert(VALUE, top), lambda: from_json(JSON, top)] * 2
    works[3] = lambda: msgpack_reader(top)
    threads = [threading.Thread(target=read, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
print("whole")
"""


def test_threads_that_meet_a_type_at_once_all_read_it():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(RACE)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "whole\n"), done.stderr
