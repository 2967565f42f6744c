"""The check against differencing.

Two models over almost the same people tell of the few that only one of them was trained on. A party
keeps, for each earlier intersection, keyed digests of its own ids in it; the key never leaves the
store. A new intersection that differs from an earlier one of the same table, or of another table of
the same source, by fewer rows than the policy's ``least_difference`` is flagged, and refused unless
the policy only warns.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from vertikal.errors import InputError
from vertikal.files import private_folder, write_whole
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.storage.id_marks import MARK_BYTES, IdMarks
from vertikal.node.storage.party_home import PartyHome

_ONE_AT_A_TIME = threading.Lock()
"""Of two runs at once, the second must find the intersection of the first."""


def check_difference(home: PartyHome, record: JobRecord, ids: Iterable[bytes]) -> None:
    """Flag an intersection that is almost an earlier one; InputError if the policy refuses it."""
    folder = private_folder(home.store / "intersections")
    with _ONE_AT_A_TIME:
        mark = IdMarks(folder).mark
        marks = {mark(one) for one in ids}
        table = str(record.proposal.job.parties[home.me].table)
        found = [
            least_difference(folder, one, record.digest, marks)
            for one in home.file.tables_of_same_source(table)
        ]
        close = min((one for one in found if one is not None), default=None)
        if close is not None and close < home.policy.least_difference:
            _flag(home, record, close)
        path = folder / f"{_title(table)}-{record.digest[:16]}"
        write_whole(path, b"".join(sorted(marks)))


def _flag(home: PartyHome, record: JobRecord, close: int) -> None:
    warning = (
        f"differencing: the common rows differ from those of an earlier job by {close}, fewer "
        f"than the {home.policy.least_difference} of your policy; two such models together "
        "tell about these few people"
    )
    home.note("flagged", record.facts, warning)
    record.note = warning
    if home.policy.differencing == "refuse":
        raise InputError(warning)


def least_difference(folder: Path, table: str, digest: str, marks: set[bytes]) -> int | None:
    """Count the rows in which the closest other intersection of this table differs, if any.

    An intersection of exactly the same rows does not count: it tells nothing new.
    """
    found = []
    for path in folder.glob(f"{_title(table)}-*"):
        if not path.name.endswith(digest[:16]):
            raw = path.read_bytes()
            earlier = {raw[at : at + MARK_BYTES] for at in range(0, len(raw), MARK_BYTES)}
            found.append(len(earlier ^ marks))
    different = [count for count in found if count]
    return min(different, default=None)


def _title(table: str) -> str:
    """Write the table's name as part of the name of a file."""
    return table.encode().hex()[:64]
