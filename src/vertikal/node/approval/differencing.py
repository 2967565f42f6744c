"""The check against differencing.

Two models over almost the same people tell of the few that only one of them was trained on. A party
keeps, for each earlier intersection, keyed digests of its own ids in it; the key never leaves the
store. A new intersection that differs from an earlier one of the same table, or of another table of
the same source, by fewer rows than the policy's ``least_difference`` is flagged, and refused unless
the policy only warns.

So is a new version over exactly the same people, if the party's own cells differ for only a few of
them: the two models together tell what has changed about these few. Rows are kept as keyed digests
too. Each party sees changes of its own columns only.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from pathlib import Path

from vertikal.errors import InputError
from vertikal.files import private_folder, write_whole
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.storage.id_marks import MARK_BYTES, IdMarks
from vertikal.node.storage.party_home import PartyHome

_CELLS = ".cells-"
"""Begin of the name of a file with marks of rows, beside the one with those of ids."""
_ONE_AT_A_TIME = threading.Lock()
"""Of two runs at once, the second must find the intersection of the first."""


def check_difference(home: PartyHome, record: JobRecord, rows: Mapping[bytes, bytes]) -> None:
    """Flag an intersection that is almost an earlier one; InputError if the policy refuses it.

    ``rows`` has a digest of this party's cells by id.
    """
    folder = private_folder(home.store / "intersections")
    with _ONE_AT_A_TIME:
        mark = IdMarks(folder).mark
        pairs = {mark(one): mark(one + content) for one, content in rows.items()}
        table = str(record.proposal.job.parties[home.me].table)
        for what, count in (("", least_difference), (" in their cells", least_change)):
            found = [
                count(folder, one, record.digest, pairs)
                for one in home.file.tables_of_same_source(table)
            ]
            close = min((one for one in found if one is not None), default=None)
            if close is not None and close < home.policy.least_difference:
                _flag(home, record, close, what)
        name = f"{_title(table)}-{record.digest[:16]}"
        write_whole(folder / name, _written(pairs))
        write_whole(folder / f"{_CELLS}{name}", _written_cells(pairs))


def _flag(home: PartyHome, record: JobRecord, close: int, what: str) -> None:
    warning = (
        f"differencing: the common rows differ from those of an earlier job{what} by {close}, "
        f"fewer than the {home.policy.least_difference} of your policy; two such models together "
        "tell about these few people"
    )
    home.note("flagged", record.facts, warning)
    record.note = warning
    if home.policy.differencing == "refuse":
        raise InputError(warning)


def least_difference(folder: Path, table: str, digest: str, marks: Collection[bytes]) -> int | None:
    """Count the rows in which the closest other intersection of this table differs, if any.

    An intersection of exactly the same rows does not count: it tells nothing new.
    """
    found = []
    own, written = set(marks), _written(marks)
    for path in folder.glob(f"{_title(table)}-*"):
        raw = path.read_bytes()
        # The same rows are the same file: most earlier jobs are read and not taken apart.
        if not path.name.endswith(digest[:16]) and raw != written:
            earlier = {raw[at : at + MARK_BYTES] for at in range(0, len(raw), MARK_BYTES)}
            found.append(len(earlier ^ own))
    return min((count for count in found if count), default=None)


def least_change(folder: Path, table: str, digest: str, pairs: Mapping[bytes, bytes]) -> int | None:
    """Count the people whose rows differ from the closest earlier job over exactly the same people.

    ``pairs`` has the mark of a row by the mark of its id. None if there is no such job, or all rows
    are as they were.
    """
    found = []
    written = _written_cells(pairs)
    for path in folder.glob(f"{_CELLS}{_title(table)}-*"):
        raw = path.read_bytes()
        others = not path.name.endswith(digest[:16]) and raw != written
        if others and len(raw) == 2 * MARK_BYTES * len(pairs):
            steps = range(0, len(raw), 2 * MARK_BYTES)
            earlier = {
                raw[at : at + MARK_BYTES]: raw[at + MARK_BYTES : at + 2 * MARK_BYTES]
                for at in steps
            }
            if earlier.keys() == pairs.keys():
                found.append(sum(earlier[one] != pairs[one] for one in pairs))
    return min((count for count in found if count), default=None)


def _written(marks: Collection[bytes]) -> bytes:
    """Write the marks of ids as they are kept, in their order."""
    return b"".join(sorted(marks))


def _written_cells(pairs: Mapping[bytes, bytes]) -> bytes:
    """Write the marks of rows as they are kept, each after that of its id, in the order of ids."""
    return b"".join(one + pairs[one] for one in sorted(pairs))


def _title(table: str) -> str:
    """Write the table's name as part of the name of a file."""
    return table.encode().hex()[:64]
