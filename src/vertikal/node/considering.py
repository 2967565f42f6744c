"""What a party decides by itself about a job that it is asked for: its policy, its standing rules.

One job at a time, so that each is counted before the next is looked at: a rule that allows so many
jobs a day allows no more when they come together.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from vertikal.errors import InputError
from vertikal.node.files import DiskFull
from vertikal.node.jobs import JobBook, Record
from vertikal.node.policy import standing_rule
from vertikal.node.site import Site

DAY = 86400.0
BY_RULE = "by a standing rule"


class Considering:
    """Rejects what the policy forbids, and approves what a standing rule allows."""

    def __init__(
        self,
        site: Site,
        book: JobBook,
        approve: Callable[[Record, str], None],
        reject: Callable[[Record, str], None],
        say: Callable[[str], None],
    ) -> None:
        self._site = site
        self._book = book
        self._approve = approve
        self._reject = reject
        self._say = say
        self._one_by_one = threading.Lock()

    def consider(self, record: Record) -> None:
        with self._one_by_one:
            try:
                self._site.check_policy(record.proposal)
                columns = self._site.columns(record.proposal)
                rule = standing_rule(self._site.file, record.proposal, columns, self._by_rule())
                if rule is not None:
                    self._approve(record, BY_RULE)
            except DiskFull as error:
                self._say(f"job {record.number}: {error}")
            except InputError as error:
                self._reject(record, str(error))

    def _by_rule(self) -> int:
        """Jobs that were approved by rule in the last 24 hours, whatever became of them."""
        recent = time.time() - DAY
        return sum(record.by_rule > recent for record in self._book.all())
