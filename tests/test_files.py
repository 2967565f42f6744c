"""Files of a store: whole, on the disk where that is promised, and made by one."""

from __future__ import annotations

import os
from pathlib import Path

from vertikal import files
from vertikal.files import write_new, write_whole


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
