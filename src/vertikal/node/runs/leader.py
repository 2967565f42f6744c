"""The leader of a job, its first label party, begins the runs of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from vertikal.node.approval.decisions import Decisions
from vertikal.node.approval.job_records import JobBook, JobRecord
from vertikal.node.links.gossip import Gossip
from vertikal.node.links.messages import Begin

LONGEST_PAUSE = 60.0


def pause(attempts: int) -> float:
    """Seconds between the beginnings of two runs: longer, the more of them were broken off."""
    return min(LONGEST_PAUSE, 0.5 * 2.0**attempts) if attempts else 0.0


class Leader:
    """Begins a run of each job that this party leads, once all have approved and are there."""

    def __init__(
        self,
        book: JobBook,
        decisions: Decisions,
        gossip: Gossip,
        is_running: Callable[[str], bool],
    ) -> None:
        self._book = book
        self._decisions = decisions
        self._gossip = gossip
        self._is_running = is_running
        self._begun: dict[str, float] = {}
        """Time at which the last run of a job was begun, by the job's digest."""

    def begin_ready(self) -> None:
        """Begin the runs that can begin now."""
        for record in self._book.all():
            if record.leads(self._gossip.me) and record.final is None and record.approved_by_all:
                self._lead(record)

    def _lead(self, record: JobRecord) -> None:
        gossip = self._gossip
        others = [name for name in record.proposal.job.names if name != gossip.me]
        if self._is_running(record.digest):
            # The message that began the run may have been lost.
            for name in others:
                news = gossip.news(name, record)
                if news is not None and news.attempt < record.attempt:
                    gossip.tell(name, Begin(record.digest, record.attempt, record.protocol))
            return
        if not gossip.is_alive(record) or gossip.missing(record):
            return
        since = time.monotonic() - self._begun.get(record.digest, -math.inf)
        if since < pause(record.attempt):
            return
        told = [gossip.news(name, record) for name in others]
        attempts = [news.attempt for news in told if news is not None and not news.running]
        if len(attempts) == len(others):
            attempt, protocol = max(record.attempt, *attempts) + 1, gossip.protocol(record)
            self._begun[record.digest] = time.monotonic()
            self._decisions.try_begin(record, attempt, protocol)
            if self._is_running(record.digest):
                for name in others:
                    gossip.tell(name, Begin(record.digest, attempt, protocol))
