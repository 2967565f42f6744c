"""Decisions that a party makes without its owner: by its policy, and by its standing rules.

Jobs are considered one at a time, so that each is counted before the next: a rule that allows some
number of jobs a day allows no more of them when they come together.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from vertikal.errors import InputError, PeerVisibleError, VertikalError
from vertikal.node.approval.disclosure_limit import check_limit
from vertikal.node.approval.job_records import JobBook, JobRecord
from vertikal.node.approval.policy import check_policy, standing_rule, used_features
from vertikal.node.peer_message import peer_message
from vertikal.node.storage.party_home import PartyHome

DAY = 86400.0
BY_RULE = "by a standing rule"


class AutomaticApproval:
    """Rejects what the policy forbids, and approves what a standing rule allows."""

    def __init__(
        self,
        home: PartyHome,
        book: JobBook,
        approve: Callable[[JobRecord, str], None],
        reject: Callable[[JobRecord, str], None],
        leave: Callable[[JobRecord], None],
        say: Callable[[str], None],
    ) -> None:
        self._home = home
        self._book = book
        self._approve = approve
        self._reject = reject
        self._leave = leave
        """Hears of each job that is left to the owner."""
        self._say = say
        self._one_by_one = threading.Lock()

    def begin(self, records: list[JobRecord]) -> None:
        """Consider these jobs in another thread, since an approval may read a large table."""
        if records:
            threading.Thread(target=self._consider_all, args=(records,), daemon=True).start()

    def begin_all(self) -> None:
        """Consider all jobs that a crash, a full disk or an older policy left undecided."""
        self.begin([record for record in self._book.all() if self._is_undecided(record)])

    def _consider_all(self, records: list[JobRecord]) -> None:
        for record in records:
            self.consider(record)

    def consider(self, record: JobRecord) -> None:
        """Reject or approve a job, or leave it to the owner; an error leaves it undecided."""
        with self._one_by_one:
            try:
                if self._is_undecided(record):
                    self._decide(record)
                if self._is_undecided(record):
                    self._leave(record)
            except Exception as error:
                # The owner can still decide, and the next start considers the job again.
                self._home.mind_room(error)
                kind = "" if isinstance(error, VertikalError) else f"{type(error).__name__}: "
                self._say(f"job {record.id} could not be considered: {kind}{error}")

    def _is_undecided(self, record: JobRecord) -> bool:
        return record.open and not record.verdict(self._home.me)

    def _decide(self, record: JobRecord) -> None:
        try:
            check_policy(self._home.file, record.proposal)
            check_limit(self._home, record.proposal, record.digest)
            columns = used_features(self._home.file, record.proposal)
            rule = standing_rule(self._home.file, record.proposal, columns, self._approved_today())
            if rule is not None:
                self._approve(record, BY_RULE)
        except InputError as error:
            with self._book.lock:
                # Only the owner may read a reason that says something about the table.
                record.note = "" if isinstance(error, PeerVisibleError) else str(error)
                self._reject(record, peer_message(self._home.me, error))

    def _approved_today(self) -> int:
        """Count the jobs that a rule approved in the last 24 hours, whatever became of them."""
        recent = time.time() - DAY
        return sum(record.by_rule > recent for record in self._book.all())
