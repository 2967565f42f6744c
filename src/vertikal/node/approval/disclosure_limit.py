"""The limit on what all jobs together open about a row, ``most_row_bits`` of the policy.

It is checked before a job is approved, and again when a run is about to open anything: only then is
the job booked to the disclosure account, and another may have been booked meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from vertikal.algorithms.algorithm import OpenedValues
from vertikal.errors import PeerVisibleError
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.approval.proposals import Proposal
from vertikal.node.config.evaluation_plan import TRIES
from vertikal.node.config.job_fits import exposure_of, predictions_of_fits
from vertikal.node.storage.disclosure_account import Opening
from vertikal.node.storage.party_home import PartyHome
from vertikal.secure.hidden.openings import OpenedBits


@dataclass(frozen=True)
class Step:
    """One receiver's balance before and after a job."""

    opening: Opening
    before: int
    most: int

    @property
    def after(self) -> int:
        return self.before + self.opening.row_bits

    @property
    def is_allowed(self) -> bool:
        return not self.opening.bounded or self.after <= self.most

    def __str__(self) -> str:
        one = self.opening
        if not one.row_bits:
            return f"this job opens no number about a row of {one.table} to {one.receiver}"
        if not one.bounded:
            return (
                f"this job shows {one.receiver} up to {one.values:,} numbers of {one.value_bits} "
                f"bits about each row of {one.table}; level {one.level!r} has no limit"
            )
        return (
            f"this job would bring what {one.receiver} knows about a row of {one.table} from "
            f"{self.before:,} to {self.after:,} bits at most; your limit is {self.most:,} "
            "(most_row_bits)"
        )


def openings_of(me: str, proposal: Proposal, digest: str, rows: int) -> list[Opening]:
    """List what a job opens about the rows of ``me``, by receiver; nothing to itself.

    All fits of the job are counted, of folds and of a search too. A job that opens nothing in
    training is listed for the predictions with its model. Predictions of rows held out are counted
    as often as broken-off runs may repeat them.
    """
    job = proposal.job
    table = job.parties[me].table
    if table is None:
        return []
    exposure = exposure_of(job)
    times = TRIES if exposure.prediction_bits else 0
    evaluated, of_fits = job.held_out_predictions * times, predictions_of_fits(job) * times
    nothing = OpenedValues(job.leader, OpenedBits(0, 0), safe_passes=0)
    return [
        Opening(
            job=digest,
            name=proposal.name,
            table=table,
            receiver=one.label_party,
            level=exposure.level,
            rows=rows,
            values=one.at_most.values,
            value_bits=one.at_most.value_bits,
            gradients=one.at_most.gradients,
            gradient_bits=one.at_most.gradient_bits,
            distances=one.distances,
            prediction_bits=exposure.prediction_bits,
            held_out_predictions=evaluated if one.label_party == job.leader else 0,
            predictions_of_fits=of_fits if one.label_party == job.leader else 0,
            bounded=one.safe_passes is not None,
        )
        for one in exposure.opened or (nothing,)
        if one.label_party != me
    ]


def steps(home: PartyHome, proposal: Proposal, digest: str) -> list[Step]:
    """Say by how much a job would raise each balance of this party's account."""
    found = []
    for one in openings_of(home.me, proposal, digest, proposal.rows):
        before = sum(
            home.account.balance(table, one.receiver, without=digest).row_bits
            for table in home.file.tables_of_same_source(one.table)
        )
        found.append(Step(one, before, home.policy.most_row_bits))
    return found


def check_limit(home: PartyHome, proposal: Proposal, digest: str) -> None:
    """Raise PeerVisibleError if a job would open more about a row than the policy allows."""
    for step in steps(home, proposal, digest):
        if not step.is_allowed:
            raise PeerVisibleError(
                f"policy of {home.me}: this job may open {step.opening.row_bits:,} bits about each "
                f"row to {step.opening.receiver}, and of the {step.most:,} of all jobs together "
                f"(most_row_bits) {max(0, step.most - step.before):,} are left; "
                f"{_less(step.opening)}, or let the owner of {home.me} allow more"
            )


def _less(opening: Opening) -> str:
    """Say how a job opens less about a row."""
    if opening.values:
        return "ask for fewer max_passes, or for fewer fits in its search and folds"
    return "evaluate it with fewer predictions, that is without contributions or folds"


def book(home: PartyHome, record: JobRecord, rows: int) -> None:
    """Book a run that is about to begin to the account; PeerVisibleError if it is too much."""
    booked = home.account.book(
        openings_of(home.me, record.proposal, record.digest, rows),
        lambda: check_limit(home, record.proposal, record.digest),
    )
    for one in booked:
        home.note(
            "booked",
            record.facts,
            f"{one.row_bits} bits about each of {one.rows} rows of {one.table}, to {one.receiver}",
        )
