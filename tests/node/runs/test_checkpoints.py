"""Checkpoints: whole blocks or none, one secret for all runs; limits that outlive a process."""

from __future__ import annotations

import os

import numpy as np
import pytest

from vertikal.errors import InputError
from vertikal.node.approval.differencing import least_difference
from vertikal.node.predictions.limits import DailyLimit
from vertikal.node.runs.checkpoints import Checkpoints


def test_a_secret_is_drawn_once(tmp_path):
    draws = iter([b"first", b"second"])
    assert Checkpoints(tmp_path / "job").secret(lambda: next(draws)) == b"first"
    assert Checkpoints(tmp_path / "job").secret(lambda: next(draws)) == b"first"


def test_blocks_come_back_and_damaged_ones_count_as_not_there(tmp_path):
    kept = Checkpoints(tmp_path / "job")
    blocks = np.arange(12, dtype=np.uint16).reshape(3, 4)
    for number, block in enumerate(blocks):
        kept.save_block("phases", number, block)
    assert kept.saved_blocks("phases") == 3
    found = np.zeros(4, np.uint16)
    kept.restore_block("phases", 1, found)
    assert (found == blocks[1]).all()
    path = tmp_path / "job" / "phases-000001"
    assert path.stat().st_mode & 0o777 == 0o600
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    assert kept.saved_blocks("phases") == 1
    kept.clear()
    assert not (tmp_path / "job").exists()


def test_rows_of_a_day_outlive_the_process(tmp_path):
    DailyLimit(tmp_path / "rows", 10).spend(7)
    again = DailyLimit(tmp_path / "rows", 10)
    with pytest.raises(InputError, match="4 rows asked for, 7 of 10 a day are used"):
        again.spend(4)
    again.spend(3)
    (tmp_path / "rows").write_text("2001-01-01 10")
    again.spend(10)


def test_a_clock_that_is_set_back_begins_no_new_day(tmp_path):
    (tmp_path / "rows").write_text("2999-12-31 7")
    limit = DailyLimit(tmp_path / "rows", 10)
    with pytest.raises(InputError, match="7 of 10 a day are used; ask again after 2999-12-31, the"):
        limit.spend(4)
    limit.spend(3)
    assert (tmp_path / "rows").read_text() == "2999-12-31 10"


@pytest.mark.parametrize("content", [b"", b"2001-01-01", b"2001-01-01 -5", b"\xff\xfe 3"])
def test_a_count_that_cannot_be_read_is_used_up(tmp_path, content):
    (tmp_path / "rows").write_bytes(content)
    with pytest.raises(InputError, match="all count as used: the owner looks at the file 'rows'"):
        DailyLimit(tmp_path / "rows", 10).spend(1)
    assert (tmp_path / "rows").read_bytes() == content


def test_the_closest_other_intersection_counts(tmp_path):
    def marks(*numbers):
        return {number.to_bytes(8, "big") for number in numbers}

    def write(digest, found):
        (tmp_path / f"{b'people'.hex()}-{digest}").write_bytes(b"".join(sorted(found)))

    assert least_difference(tmp_path, "people", "a" * 16, marks(1, 2, 3)) is None
    write("b" * 16, marks(1, 2, 3))
    write("c" * 16, marks(1, 2, 3, 4, 5))
    assert least_difference(tmp_path, "people", "a" * 16, marks(1, 2, 3)) == 2
    assert least_difference(tmp_path, "people", "a" * 16, marks(1, 2, 9)) == 2
    assert least_difference(tmp_path, "other", "a" * 16, marks(1)) is None
    assert least_difference(tmp_path, "people", "c" * 16, marks(1, 2, 3)) is None


def test_lists_grow_and_end_before_what_is_not_whole(tmp_path):
    kept = Checkpoints(tmp_path / "job")
    assert kept.entries("answers") == []
    kept.append("answers", b"one")
    kept.append("answers", b"", durable=True)
    kept.append("answers", b"three")
    path = tmp_path / "job" / "answers.list"
    assert path.stat().st_mode & 0o777 == 0o600
    again = Checkpoints(tmp_path / "job")
    assert again.entries("answers") == [b"one", b"", b"three"]
    # A crash in the midst of an entry: it is not there, and the next one takes its place.
    path.write_bytes(path.read_bytes()[:-2])
    torn = Checkpoints(tmp_path / "job")
    assert torn.entries("answers") == [b"one", b""]
    torn.append("answers", b"four")
    torn.append("answers", b"a longer one than what was torn")
    assert Checkpoints(tmp_path / "job").entries("answers") == [
        *(b"one", b"", b"four"),
        b"a longer one than what was torn",
    ]


@pytest.mark.parametrize("place", [0, 3, 7, 20, 45])
def test_a_damaged_count_of_what_was_opened_is_refused(tmp_path, place):
    """Wherever it is damaged, also in a length: what follows was opened, and stays."""
    kept = Checkpoints(tmp_path / "job")
    for number in range(5):
        kept.append("opened-61", number.to_bytes(8, "little"), durable=True)
    path = tmp_path / "job" / "opened-61.list"
    raw = bytearray(path.read_bytes())
    raw[48 + place] ^= 1
    path.write_bytes(raw)
    again = Checkpoints(tmp_path / "job")
    with pytest.raises(InputError, match=r"'opened-61.list' .* damaged after entry 1, .* submit"):
        again.entries("opened-61")
    with pytest.raises(InputError, match="damaged after entry 1"):
        again.append("opened-61", b"more")
    assert path.read_bytes() == raw


def test_a_new_list_has_its_name_on_the_disk(tmp_path, monkeypatch):
    kept, synced, fsync = Checkpoints(tmp_path / "job"), [], os.fsync

    def sync(number):
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{number}"), tmp_path))
        fsync(number)

    monkeypatch.setattr(os, "fsync", sync)
    kept.append("opened-61", b"one", durable=True)
    assert synced == ["job/opened-61.list", "job", "."]
    kept.append("opened-61", b"two", durable=True)
    kept.append("answers", b"one")
    assert synced[3:] == ["job/opened-61.list"]


@pytest.mark.parametrize("left", [1, 39, 40, 47])
@pytest.mark.parametrize("unwritten", [False, True])
def test_a_torn_end_of_what_was_opened_is_a_crash(tmp_path, left, unwritten):
    kept = Checkpoints(tmp_path / "job")
    kept.append("opened-61", b"12345678")
    kept.append("opened-61", b"87654321")
    path = tmp_path / "job" / "opened-61.list"
    whole = path.read_bytes()
    path.write_bytes(whole[: 48 + left] + (b"\0" * (48 - left) if unwritten else b""))
    again = Checkpoints(tmp_path / "job")
    assert again.entries("opened-61") == [b"12345678"]
    again.append("opened-61", b"")
    assert path.stat().st_size == 48 + 40
    assert Checkpoints(tmp_path / "job").entries("opened-61") == [b"12345678", b""]


def test_work_is_forgotten_and_what_was_opened_is_not(tmp_path):
    kept = Checkpoints(tmp_path / "job")
    kept.secret(lambda: b"secret")
    kept.write("rows", b"rows")
    kept.save_block("phases", 0, np.zeros(3))
    kept.append("answers", b"answer")
    kept.append("opened-61", b"entry")
    kept.forget_work()
    assert (kept.saved_blocks("phases"), kept.entries("answers")) == (0, [])
    assert kept.entries("opened-61") == [b"entry"]
    assert (kept.read("secret"), kept.read("rows")) == (b"secret", b"rows")
    kept.append("answers", b"another")
    assert kept.entries("answers") == [b"another"]
