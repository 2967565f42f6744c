"""A running service as its health and metrics see it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from vertikal.node.approval.job_records import JobBook, JobRecord
from vertikal.node.links.standing_links import StandingLinks
from vertikal.node.monitoring.metrics import DONE, ENDED, RUNS, WAITS_FOR_OTHERS, WAITS_FOR_OWNER
from vertikal.node.storage.disclosure_account import Balance
from vertikal.node.storage.party_home import PartyHome


class ServiceView:
    """Facts about a service, put together from its parts when they are asked for."""

    def __init__(
        self,
        home: PartyHome,
        book: JobBook,
        links: StandingLinks,
        is_running: Callable[[str], bool],
        last_beat: Callable[[], float],
    ) -> None:
        self._home = home
        self._book = book
        self._links = links
        self._is_running = is_running
        self._last_beat = last_beat
        """Time of the last beat, by the monotonic clock."""

    @property
    def me(self) -> str:
        return self._home.me

    @property
    def store(self) -> Path:
        return self._home.store

    @property
    def beat_age(self) -> float:
        """Seconds since the last beat."""
        return time.monotonic() - self._last_beat()

    @property
    def disk_full(self) -> bool:
        return self._home.room.full

    @property
    def row_bits_limit(self) -> int:
        return self._home.policy.most_row_bits

    def peers_up(self) -> dict[str, bool]:
        """Tell of each other party whether it can be reached."""
        return {name: one.up for name, one in self._links.presence().items()}

    def job_states(self) -> Counter[str]:
        """Count the jobs in each state of `metrics.JOB_STATES`."""
        return Counter(map(self._state, self._book.all()))

    def events(self) -> Mapping[str, int]:
        """Count the lines of the audit log since the start, by event."""
        return dict(self._home.log.events)

    def balances(self) -> list[Balance]:
        return self._home.account.balances()

    def _state(self, record: JobRecord) -> str:
        if record.done:
            # A run ends a moment after its party is done.
            return DONE
        if self._is_running(record.digest):
            return RUNS
        if record.final is not None:
            return ENDED
        return WAITS_FOR_OTHERS if record.verdict(self.me) else WAITS_FOR_OWNER
