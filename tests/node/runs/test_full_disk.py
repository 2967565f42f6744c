"""A full disk, wherever it is met: said in one line, told to the others, and the job goes on."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from tests.node.services import trio
from tests.organisations import NAMES, lay_out, write_job
from tests.waiting import until
from vertikal.algorithms.kernel_machine import phases
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.errors import DiskFull
from vertikal.files import Room, is_full, private_folder
from vertikal.node.models.store import ModelStore
from vertikal.node.runs import leader
from vertikal.node.runs.checkpoint_folder import CheckpointFolder


class Disk:
    """Files below ``full`` find no room: when they are made, or late, when they are synced."""

    def __init__(self) -> None:
        self.full = ""
        self.late = False
        self._open, self._sync = os.open, os.fsync

    def open(self, path, flags, mode=0o777, **options):
        if not self.late and self._hit(path) and flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))
        return self._open(path, flags, mode, **options)

    def fsync(self, number):
        if self.late and self._hit(os.readlink(f"/proc/self/fd/{number}")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._sync(number)

    def _hit(self, path):
        return bool(self.full) and self.full in os.fspath(path)


@pytest.fixture
def disk(monkeypatch, quick_beats):
    found = Disk()
    monkeypatch.setattr(os, "open", found.open)
    monkeypatch.setattr(os, "fsync", found.fsync)
    monkeypatch.setattr(leader, "pause", lambda attempts: 0.2)
    return found


def shards(world):
    found = {name: world.models(name).load("credit", FDSKL).shard for name in NAMES}
    assert all(one.seed for one in found.values())
    return found["lender"].coefficients.tobytes(), [found[name].seed for name in NAMES]


def versions(world, name):
    """The versions of the model in a party's store, each whole, and nothing beside them."""
    models = world.models(name)
    there = [one.version for one in models.versions()]
    for number in there:
        models.load("credit", FDSKL, number)
    folder = Path(world.root, name, "store", "models", "credit")
    assert sorted(path.name for path in folder.iterdir()) == [str(one) for one in there]
    return there


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("who", ["shop", "lender"])
def test_a_model_that_finds_no_room(world, disk, monkeypatch, who, late):
    world.done(world.submit().digest)
    before = shards(world)
    real = ModelStore.save

    def save(self, name, shard, algorithm, **options):
        # Full from the model on; late, it is only noticed when its last file is to be synced.
        disk.late = late
        disk.full = f"{who}/store" if shard.party == who else disk.full
        return real(self, name, shard, algorithm, **options)

    with monkeypatch.context() as patch:
        patch.setattr(ModelStore, "save", save)
        digest = world.submit().digest
        record = world.wait(who, digest, lambda one: "disk" in one.note, "says it")
    place = world.root / who / "store" / "models" / "credit"
    assert record.note == (
        f"the disk of the store is full: '{place}' was not written; free some space there, and the "
        "job goes on by itself from its last checkpoint"
    )
    others = [name for name in NAMES if name != who]
    for name in others:
        world.wait(name, digest, lambda one: "disk of its store is full" in one.note, "is told")
        assert f"{who}: the disk of its store is full" in world.record(name, digest).note
        assert str(world.root) not in world.record(name, digest).note

    def waits():
        told = [world[name].answer({"command": "list"})[1]["state"] for name in others]
        return all(f"the disk of {who}'s store is full" in state for state in told)

    until(waits, "the others say whom they wait for", world.told)
    assert versions(world, who) == [1]
    attempt = record.attempt
    # While it is full no run is begun, and none is used up.
    until(lambda: len(world.said[who]) > 0 and not world[who].runs.run_of(record), "idle")
    for _ in range(3):
        beats = world["lender"].gossip.beats
        seen = beats["bank"].beat.time
        until(lambda b=beats, s=seen: b["bank"].beat.time > s + 0.3, "beats")
    assert record.attempt == attempt
    disk.full = ""
    world.done(digest)
    # A shard of the broken-off run is not kept beside that of the finished one.
    assert [len(versions(world, name)) for name in NAMES] == [2, 2, 2]
    assert shards(world) == before


@pytest.mark.parametrize(("what", "who"), [("save_block", "lender"), ("write", "bank")])
def test_a_checkpoint_that_finds_no_room(world, disk, monkeypatch, what, who):
    world.done(world.submit().digest)
    before = shards(world)
    monkeypatch.setattr(phases, "BLOCK_BYTES", 16 * 16)
    real, calls = getattr(CheckpointFolder, what), []

    def meets_it(self, *arguments, **options):
        if f"{who}/store" in os.fspath(self.folder):
            calls.append(arguments[0])
            if len(calls) == 3:
                disk.full = f"{who}/store"
        return real(self, *arguments, **options)

    monkeypatch.setattr(CheckpointFolder, what, meets_it)
    digest = world.submit().digest
    record = world.wait(who, digest, lambda one: "disk" in one.note, "says it")
    place = re.escape(str(world.root / who / "store" / "checkpoints" / digest[:16]))
    assert re.fullmatch(
        rf"the disk of the store is full: '{place}/\S+' was not written; free some .*", record.note
    )
    for name in NAMES:
        if name != who:
            world.wait(name, digest, lambda one: f"{who}: the disk" in one.note, "is told")
    disk.full = ""
    world.done(digest)
    assert shards(world) == before
    for name in NAMES:
        kept = Path(world.root, name, "store", "checkpoints")
        until(lambda folder=kept: not list(folder.iterdir()), "checkpoints are gone")


def test_a_full_disk_while_predicting_is_told_without_a_path(world, disk):
    world.done(world.submit().digest)
    lender = world["lender"]
    lender.predict("credit", ("1000",), None, None)
    disk.full = "bank/store"
    with pytest.raises(
        Exception, match=r"^bank refused these predictions: bank: the disk of its store is full$"
    ):
        lender.predict("credit", ("1000",), None, None)
    disk.full = ""
    until(lambda: not world["bank"].home.room.full, "room")
    until(lambda: not lender.gossip.beats["bank"].beat.full, "told")
    assert lender.predict("credit", ("1000",), None, None)[0]["status"] == "ok"


def test_what_cannot_be_saved_has_not_happened(tmp_path, disk):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        disk.full = "lender/store/jobs"
        with pytest.raises(DiskFull, match=r"lender/store/jobs/\S+ was not written"):
            world.submit()
        assert world["lender"].answer({"command": "list"}) == []
        disk.full = ""
        digest = world.submit().digest
        record = world.record("bank", digest)
        assert world["bank"].book.named(record.id) is record
        disk.full = "bank/store/jobs"
        with pytest.raises(DiskFull, match=r"bank/store/jobs/\S+ was not written"):
            world["bank"].decisions.approve(record.id)
        assert record.state("bank") == "asks for your approval"
        assert record.table == ""
        # Nor does it count what the others say before that is on its disk.
        world.approve(digest, "shop")
        until(lambda: any("was not taken in" in line for line in world.said["bank"]), "says it")
        assert record.verdict("shop") == ""
        disk.full = ""
        world.approve(digest, "bank")
        world.done(digest)


def test_other_writes_of_a_run_that_find_no_room(world, disk, monkeypatch):
    """A full disk in a function of another library is no defect of the program either."""
    real, met = CheckpointFolder.saved_blocks, []

    def saved_blocks(self, name):
        if not met:
            met.append(1)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/somewhere/else")
        return real(self, name)

    monkeypatch.setattr(CheckpointFolder, "saved_blocks", saved_blocks)
    digest = world.submit().digest
    world.wait("lender", digest, lambda one: "'/somewhere/else' was not" in one.note, "says it")
    world.done(digest)


def test_room_is_asked_for_only_after_it_was_missed(tmp_path, disk):
    room = Room(tmp_path)
    disk.full = str(tmp_path)
    assert room.regained()
    room.full = True
    assert not room.regained()
    disk.full = ""
    assert room.regained()
    assert not room.full
    assert list(tmp_path.iterdir()) == []


def test_what_counts_as_full(tmp_path, monkeypatch):
    assert is_full(OSError(errno.EDQUOT, ""))
    assert is_full(OSError(errno.EFBIG, ""))
    assert not is_full(OSError(errno.EACCES, ""))

    def mkdir(self, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(DiskFull, match="was not written; free some space there"):
        private_folder(tmp_path / "checkpoints")
