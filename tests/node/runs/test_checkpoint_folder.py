"""Checkpoints: whole blocks or none, one secret for all runs."""

from __future__ import annotations

import os

import numpy as np
import pytest

from vertikal.errors import InputError
from vertikal.node.runs.checkpoint_folder import CheckpointFolder
from vertikal.party.checkpoints import PartOfCheckpoints


def test_a_secret_is_drawn_once(tmp_path):
    draws = iter([b"first", b"second"])
    assert CheckpointFolder(tmp_path / "job").secret(lambda: next(draws)) == b"first"
    assert CheckpointFolder(tmp_path / "job").secret(lambda: next(draws)) == b"first"


def test_blocks_come_back_and_damaged_ones_count_as_not_there(tmp_path):
    kept = CheckpointFolder(tmp_path / "job")
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


def test_lists_grow_and_end_before_what_is_not_whole(tmp_path):
    kept = CheckpointFolder(tmp_path / "job")
    assert kept.entries("answers") == []
    kept.append("answers", b"one")
    kept.append("answers", b"", durable=True)
    kept.append("answers", b"three")
    path = tmp_path / "job" / "answers.list"
    assert path.stat().st_mode & 0o777 == 0o600
    again = CheckpointFolder(tmp_path / "job")
    assert again.entries("answers") == [b"one", b"", b"three"]
    # A crash in the midst of an entry: it is not there, and the next one takes its place.
    path.write_bytes(path.read_bytes()[:-2])
    torn = CheckpointFolder(tmp_path / "job")
    assert torn.entries("answers") == [b"one", b""]
    torn.append("answers", b"four")
    torn.append("answers", b"a longer one than what was torn")
    assert CheckpointFolder(tmp_path / "job").entries("answers") == [
        *(b"one", b"", b"four"),
        b"a longer one than what was torn",
    ]


@pytest.mark.parametrize("place", [0, 3, 7, 20, 45])
def test_a_damaged_count_of_what_was_opened_is_refused(tmp_path, place):
    """Wherever it is damaged, also in a length: what follows was opened, and stays."""
    kept = CheckpointFolder(tmp_path / "job")
    for number in range(5):
        kept.append("opened-61", number.to_bytes(8, "little"), durable=True)
    path = tmp_path / "job" / "opened-61.list"
    raw = bytearray(path.read_bytes())
    raw[48 + place] ^= 1
    path.write_bytes(raw)
    again = CheckpointFolder(tmp_path / "job")
    with pytest.raises(InputError, match=r"'opened-61.list' .* damaged after entry 1, .* submit"):
        again.entries("opened-61")
    with pytest.raises(InputError, match="damaged after entry 1"):
        again.append("opened-61", b"more")
    assert path.read_bytes() == raw


def test_a_new_list_has_its_name_on_the_disk(tmp_path, monkeypatch):
    kept, synced, fsync = CheckpointFolder(tmp_path / "job"), [], os.fsync

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
    kept = CheckpointFolder(tmp_path / "job")
    kept.append("opened-61", b"12345678")
    kept.append("opened-61", b"87654321")
    path = tmp_path / "job" / "opened-61.list"
    whole = path.read_bytes()
    path.write_bytes(whole[: 48 + left] + (b"\0" * (48 - left) if unwritten else b""))
    again = CheckpointFolder(tmp_path / "job")
    assert again.entries("opened-61") == [b"12345678"]
    again.append("opened-61", b"")
    assert path.stat().st_size == 48 + 40
    assert CheckpointFolder(tmp_path / "job").entries("opened-61") == [b"12345678", b""]


def test_work_is_forgotten_and_what_was_opened_is_not(tmp_path):
    kept = CheckpointFolder(tmp_path / "job")
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


def test_a_part_that_is_done_is_forgotten_and_what_it_opened_is_not(tmp_path):
    kept = CheckpointFolder(tmp_path / "job")
    for name in ("try-1", "try-10"):
        part = PartOfCheckpoints(kept, name)
        part.save_block("phases", 0, np.zeros(3))
        part.append("answers", b"answer")
        part.append("opened-61", b"entry")
    kept.save_block("phases", 0, np.zeros(3))
    kept.forget_part("try-1")
    first, tenth = (PartOfCheckpoints(kept, name) for name in ("try-1", "try-10"))
    assert (first.saved_blocks("phases"), first.entries("answers")) == (0, [])
    assert (tenth.saved_blocks("phases"), tenth.entries("answers")) == (1, [b"answer"])
    assert first.entries("opened-61") == tenth.entries("opened-61") == [b"entry"]
    assert kept.saved_blocks("phases") == 1
    first.append("answers", b"another")
    assert first.entries("answers") == [b"another"]
