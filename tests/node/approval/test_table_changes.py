"""Changes of a table since the last model of a name."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from vertikal.node.approval.table_changes import TableChanges

ROWS = {b"%d" % number: b"as it was" for number in range(20)}


def record(digest, name="credit", when=1.0, done=True):
    return SimpleNamespace(
        digest=digest, done=done, proposal=SimpleNamespace(name=name, submitted=when)
    )


@pytest.mark.parametrize(
    ("now", "count"),
    [
        (ROWS, 0),
        (ROWS | {b"3": b"new"}, 1),
        (ROWS | {b"99": b"as it was"}, 1),
        ({one: cells for one, cells in ROWS.items() if one != b"3"}, 1),
        ({one: b"new" for one in ROWS}, 20),
        (dict(reversed(ROWS.items())), 0),
    ],
)
def test_rows_that_came_went_or_changed_are_counted_once_each(tmp_path, now, count):
    changes = TableChanges(tmp_path / "submitted")
    changes.keep("a" * 64, ROWS)
    assert changes.count([record("a" * 64)], "credit", now) == count


def test_the_last_finished_job_of_the_name_counts(tmp_path):
    changes = TableChanges(tmp_path / "submitted")
    for digest, rows in (("a", ROWS), ("b", {}), ("c", {}), ("d", {})):
        changes.keep(digest, rows)
    records = [
        record("a", when=2.0),
        record("b", when=1.0),
        record("c", when=3.0, done=False),
        record("d", name="other", when=4.0),
        record("submitted by hand", when=5.0),
    ]
    assert changes.count(records, "credit", ROWS) == 0
    assert changes.count(records, "nothing", ROWS) is None
    assert changes.count([record("never kept")], "credit", ROWS) is None
    assert b"as it was" not in (tmp_path / "submitted" / "a").read_bytes()
