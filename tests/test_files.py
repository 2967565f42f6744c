"""Files of a store: whole, on the disk where that is promised, and made by one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vertikal import files
from vertikal.errors import InputError
from vertikal.files import private_folder, write_new, write_whole

SOMEBODY = 65534
"""Number of a user that runs no test."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other users")


def test_a_durable_file_has_its_name_on_the_disk(tmp_path, monkeypatch):
    events, replace, fsync = [], os.replace, os.fsync

    def replaced(old, new):
        # Threads that other tests have left behind may write files of their own.
        if new.parent == tmp_path:
            events.append("moved")
        replace(old, new)

    def synced(number):
        path = Path(os.readlink(f"/proc/self/fd/{number}"))
        if tmp_path in (path, path.parent):
            events.append("folder" if path == tmp_path else "file")
        fsync(number)

    monkeypatch.setattr(files.os, "replace", replaced)
    monkeypatch.setattr(files.os, "fsync", synced)
    write_whole(tmp_path / "kept", b"1")
    assert events == ["file", "moved", "folder"]
    events.clear()
    write_whole(tmp_path / "kept", b"2", durable=False)
    assert events == ["moved"]


def test_a_new_file_is_made_once(tmp_path):
    assert write_new(tmp_path / "key", b"first")
    assert not write_new(tmp_path / "key", b"second")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"key": b"first"}


def test_a_link_in_place_of_a_file_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "mine").write_bytes(b"precious")
    (tmp_path / "state").symlink_to("mine")
    write_whole(tmp_path / "state", b"new")
    assert (tmp_path / "mine").read_bytes() == b"precious"
    assert not (tmp_path / "state").is_symlink()
    (tmp_path / "key").symlink_to("absent")
    assert not write_new(tmp_path / "key", b"x")
    assert not (tmp_path / "absent").exists()


def test_an_owners_link_to_a_store_is_followed(tmp_path):
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "store").symlink_to("disk")
    assert private_folder(tmp_path / "store") == tmp_path / "store"
    (tmp_path / "disk").chmod(0o750)
    with pytest.raises(InputError, match="'store' must be open to its owner only, got mode 750"):
        private_folder(tmp_path / "store")


def test_a_link_to_nowhere_is_no_store(tmp_path):
    (tmp_path / "store").symlink_to("absent")
    with pytest.raises(InputError, match="store 'store' cannot be used"):
        private_folder(tmp_path / "store")
    assert not (tmp_path / "absent").exists()


@as_root
@pytest.mark.parametrize("what", ["folder", "link"])
def test_a_store_or_a_link_to_it_of_another_user_is_refused(tmp_path, what):
    """A link into a folder of another user would let that user read all that is written."""
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "store").symlink_to("disk")
    os.chown(
        tmp_path / {"folder": "disk", "link": "store"}[what], SOMEBODY, -1, follow_symlinks=False
    )
    with pytest.raises(
        InputError, match=f"must belong to the user that uses it, number 0, got {SOMEBODY}"
    ):
        private_folder(tmp_path / "store")
