"""Marks of ids: the same in one folder at all times, and others elsewhere."""

from __future__ import annotations

from vertikal.node.storage.id_marks import MARK_BYTES, IdMarks


def test_marks_last_and_belong_to_a_folder(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    first = IdMarks(here).mark(b"ann")
    assert IdMarks(here).mark(b"ann") == first != IdMarks(here).mark(b"bob")
    assert IdMarks(there).mark(b"ann") != first
    assert len(first) == MARK_BYTES
    assert (here / ".key").stat().st_mode & 0o077 == 0
