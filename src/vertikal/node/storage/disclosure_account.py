"""The disclosure account: what has been opened about the rows of a party's tables, and to whom.

Each job shows a receiver some numbers about every row, of some bits each; what one job may show is
bounded, and here it is added up over all jobs. An entry is booked before anything of it leaves the
party, at the most that its job may open, and never taken back: a run that was broken off may have
opened all of it. All runs of one job together open no more than was agreed, so a job is booked
once, however often it is taken up.

Jobs of one table are counted as if all were about the same rows. Two receivers are counted apart.
Predictions are counted per person by `question_count.py`, and limited there.

Entries are the lines of a log that is chained as the audit log is; `audit_log.verify` checks it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from vertikal.node.storage.audit_log import AuditLog, read
from vertikal.records import convert

FILE = "account.log"
_BOOKED = "opened"


class Opening(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers about the rows of one table that one job opens to one receiver, at most."""

    job: str
    """Digest of the job."""
    name: str
    table: str
    receiver: str
    level: str
    rows: int
    values: int
    """Numbers about each row."""
    value_bits: int
    gradients: int = 0
    """Sums over rows, about each direction."""
    gradient_bits: int = 0
    distances: int = 0
    """Distances between two rows each."""
    prediction_bits: int = 0
    """Bits of a prediction about the person asked for; 0 if it shows features."""
    held_out_predictions: int = 0
    """Predictions of a row that is held out of training to evaluate the model; 0 if these show
    features, or if there are none."""
    predictions_of_fits: int = 0
    """Predictions of a row by fits beside the model's own, of folds and of a search, that were not
    trained on it; 0 if these show features, or if there are none."""
    bounded: bool = True
    """False if the owner has allowed a level that shows these numbers whatever their number."""

    @property
    def row_bits(self) -> int:
        """Bits about each row at most: one of training, or held out, and that of all other fits."""
        evaluated = self.held_out_predictions * self.prediction_bits
        of_fits = self.predictions_of_fits * self.prediction_bits
        return max(self.values * self.value_bits, evaluated) + of_fits


@dataclass(frozen=True)
class Balance:
    """All that one receiver holds, at most, about any row of one table."""

    table: str
    receiver: str
    openings: tuple[Opening, ...]

    @property
    def row_bits(self) -> int:
        """Bits about a row, of jobs whose level bounds them."""
        return sum(one.row_bits for one in self.openings if one.bounded)

    @property
    def unbounded_bits(self) -> int:
        """Bits about a row, of jobs whose level shows them all."""
        return sum(one.row_bits for one in self.openings if not one.bounded)

    @property
    def values(self) -> int:
        return sum(one.values for one in self.openings)

    @property
    def gradients(self) -> int:
        """Sums over rows; each can be one row's features at a receiver that deviates."""
        return sum(one.gradients for one in self.openings)

    @property
    def distances(self) -> int:
        return sum(one.distances for one in self.openings)


class DisclosureAccount:
    """The account of one party, in its store."""

    def __init__(self, store: Path, party: str) -> None:
        self.path = store / FILE
        self._log = AuditLog(self.path, party)
        # Two jobs that begin at once must not both be booked against the same rest.
        self._one_at_a_time = threading.Lock()

    def openings(self) -> list[Opening]:
        """Return all entries, oldest first."""
        if not self.path.exists():
            return []
        return [convert(line.facts, Opening) for line in read(self.path) if line.event == _BOOKED]

    def balances(self) -> list[Balance]:
        """Add up the entries of each table and receiver."""
        found: dict[tuple[str, str], list[Opening]] = {}
        for one in self.openings():
            found.setdefault((one.table, one.receiver), []).append(one)
        return [Balance(*key, tuple(openings)) for key, openings in sorted(found.items())]

    def balance(self, table: str, receiver: str, *, without: str = "") -> Balance:
        """Return one receiver's balance, apart from the job ``without``."""
        openings = (
            one
            for one in self.openings()
            if (one.table, one.receiver) == (table, receiver) and one.job != without
        )
        return Balance(table, receiver, tuple(openings))

    def book(self, openings: Iterable[Opening], check: Callable[[], None]) -> list[Opening]:
        """Book what a job may open, unless ``check`` raises; return what was not booked before.

        It is on disk when this returns.
        """
        with self._one_at_a_time:
            booked = {(one.job, one.receiver) for one in self.openings()}
            wanted = [one for one in openings if (one.job, one.receiver) not in booked]
            if wanted:
                check()
            for one in wanted:
                self._log.record(_BOOKED, **msgspec.structs.asdict(one))
        return wanted
