"""Changes of a party's own table since the last model of a name, so that retraining waits for some.

A submitter that trains again by a schedule would often train on what it had: that opens more about
everybody and learns nothing. With each such job marks of the table's rows are kept, under a key of
the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from vertikal.files import private_folder, write_whole
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.storage.id_marks import MARK_BYTES, IdMarks

_PAIR = 2 * MARK_BYTES


class TableChanges:
    """Marks of the rows with which jobs were submitted, a file per job in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def count(
        self, records: Iterable[JobRecord], name: str, rows: Mapping[bytes, bytes]
    ) -> int | None:
        """Count the rows that came, went or changed since the last finished job of this name.

        Only jobs whose rows were kept count. ``rows`` has a digest of the cells by id. None if
        there is no such job.
        """
        done = [
            one
            for one in records
            if one.done and one.proposal.name == name and (self._folder / one.digest).exists()
        ]
        last = max(done, key=lambda one: one.proposal.submitted, default=None)
        if last is None:
            return None
        raw = (self._folder / last.digest).read_bytes()
        before = {raw[at : at + _PAIR] for at in range(0, len(raw), _PAIR)}
        now = self._pairs(rows)
        # Somebody whose row has changed is in both differences.
        changed = {pair[:MARK_BYTES] for pair in before ^ now}
        return len(changed)

    def keep(self, job: str, rows: Mapping[bytes, bytes]) -> None:
        """Keep the rows with which the job of this digest was submitted."""
        content = b"".join(sorted(self._pairs(rows)))
        write_whole(private_folder(self._folder) / job, content)

    def _pairs(self, rows: Mapping[bytes, bytes]) -> set[bytes]:
        mark = IdMarks(private_folder(self._folder)).mark
        return {mark(one) + mark(one + content) for one, content in rows.items()}
