"""Gossip: every party tells its peers, once a second, what it knows of their common jobs.

A beat lists the jobs, and for each job whose decisions the sender has. Whoever has more sends it in
answer: the proposal, or single decisions, as they were signed. So it does not matter which services
were running when a job was submitted or decided about, and a message that is lost is sent again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import msgspec

from vertikal.errors import DiskFull, PeerStopped
from vertikal.mesh.wire import MAX_NAME
from vertikal.node.approval.job_records import JobBook, JobRecord
from vertikal.node.approval.proposals import SignedBytes
from vertikal.node.links.messages import (
    Answered,
    Asked,
    Beat,
    BeatAssembly,
    JobNews,
    Message,
    pack,
    split_beat,
)
from vertikal.node.links.protocols import OWN, Spoken, in_words, newest_common
from vertikal.node.links.standing_links import StandingLinks
from vertikal.node.printable import printable
from vertikal.node.storage.party_home import PartyHome
from vertikal.version import __version__

FRESH = 5.0
"""Seconds after which a peer's last beat no longer says how it is now."""


class LastBeat(NamedTuple):
    """The last beat of one peer."""

    beat: Beat
    received: float
    """Time of its coming, by this process's monotonic clock."""
    clock_lead: float
    """Seconds by which the peer's clock is ahead of this party's."""


class Gossip:
    """All that one party tells its peers of jobs, and all that they told it."""

    def __init__(
        self,
        home: PartyHome,
        book: JobBook,
        links: StandingLinks,
        is_running: Callable[[str], bool],
        say: Callable[[str], None],
        wake: Callable[[], None],
    ) -> None:
        self._home = home
        self._book = book
        self._links = links
        self._is_running = is_running
        self._say = say
        self._wake = wake
        """Asks for the next beat at once."""
        self._assembly = BeatAssembly()
        self._news: dict[str, dict[str, JobNews]] = {}
        """By peer and by digest of the job."""
        self.beats: dict[str, LastBeat] = {}

    @property
    def me(self) -> str:
        return self._home.me

    def tell(self, name: str, message: Message) -> None:
        """Send a message to a peer, signed; it is lost if there is no link."""
        self._links.tell(name, pack(self.me, name, message, self._home.keys))

    # To the peers.

    def beat(self) -> None:
        """Tell every connected peer what this party knows of their common jobs."""
        full = self._home.room.full
        for name, one in self._links.presence().items():
            if one.up:
                try:
                    whole = Beat(
                        __version__,
                        time.time(),
                        self._news_for(name),
                        full,
                        federation=self._home.federation.state,
                        oldest=OWN[0],
                        newest=OWN[1],
                    )
                    for part in split_beat(whole):
                        self.tell(name, part)
                except Exception as error:
                    # The other peers must hear of this party all the same.
                    self._say(f"a beat to {name} failed: {type(error).__name__}: {error}")

    def share(self, record: JobRecord) -> None:
        """Send the other parties of a job everything that was signed about it."""
        for name in self._others(record):
            self._send_all(name, record)
        self._wake()

    def pass_on(self, record: JobRecord, decision: SignedBytes, decided_by: str) -> None:
        """Send one party's decision to all others."""
        for name in self._others(record):
            if name != decided_by:
                self.tell(name, Answered(decision))

    def _others(self, record: JobRecord) -> list[str]:
        return [name for name in record.proposal.job.names if name != self.me]

    def _news_for(self, peer: str) -> tuple[JobNews, ...]:
        """The common jobs that are alive here, or to the peer by its last beat."""
        alive_there = {one.digest for one in self._news.get(peer, {}).values() if one.alive}
        return tuple(
            JobNews(
                record.digest,
                record.attempt,
                self._is_running(record.digest),
                record.done,
                tuple(record.decisions),
                record.final is not None,
                self.is_alive(record),
            )
            for record in self._book.all()
            if peer in record.proposal.job.parties
            and (self.is_alive(record) or record.digest in alive_there)
        )

    def _send_all(self, name: str, record: JobRecord) -> None:
        self.tell(name, Asked(record.signed))
        for signed, _ in list(record.decisions.values()):
            self.tell(name, Answered(signed))

    # From the peers.

    def hear(self, sender: str, part: Beat) -> None:
        """Take in a beat, or a part of one, and send its sender what it lacks."""
        beat = self._assembly.add(sender, part)
        if beat is None:
            return
        beat = msgspec.structs.replace(beat, version=printable(beat.version)[:MAX_NAME])
        before = self.beats.get(sender)
        self.beats[sender] = LastBeat(beat, time.monotonic(), beat.time - time.time())
        news = self._news[sender] = {one.digest: one for one in beat.jobs}
        if before is None or (before.beat.jobs, before.beat.full) != (beat.jobs, beat.full):
            self._wake()
        for record in self._book.all():
            if sender in record.proposal.job.parties:
                self._send_lacking(sender, record, news.get(record.digest))

    def _send_lacking(self, peer: str, record: JobRecord, theirs: JobNews | None) -> None:
        if theirs is None:
            if record.open:
                self._send_all(peer, record)
        elif record.final is not None and not theirs.final:
            self._send_all(peer, record)
        else:
            for party, (signed, _) in list(record.decisions.items()):
                if party not in theirs.known:
                    self.tell(peer, Answered(signed))

    # What follows from both.

    def news(self, peer: str, record: JobRecord) -> JobNews | None:
        """A peer's last news of a job."""
        return self._news.get(peer, {}).get(record.digest)

    def is_alive(self, record: JobRecord) -> bool:
        """Tell whether something can still happen to a job at any party."""
        if not record.settled and self._done_by_all(record):
            # Kept for good, since peers stop speaking of a job once they know the same. Where the
            # disk is full, the job stays in the beats until this can be written.
            with suppress(DiskFull), self._book.changing(record):
                record.settled = True
        return record.final is None and not record.settled

    def not_done(self, record: JobRecord) -> list[str]:
        """Return the other parties at which a job, done here, is not known to be done."""
        return self._not_done(record) if self.is_alive(record) else []

    def _done_by_all(self, record: JobRecord) -> bool:
        return record.done and not self._not_done(record)

    def _not_done(self, record: JobRecord) -> list[str]:
        news = {name: self.news(name, record) for name in self._others(record)}
        return [name for name, one in news.items() if one is None or not one.done]

    def protocol(self, record: JobRecord) -> int:
        """Choose the protocol for a run or session that this party leads; `missing` comes first."""
        found = newest_common(self._spoken(record).values())
        if found is None:
            raise PeerStopped(self._no_common_protocol(record))
        return found

    def _spoken(self, record: JobRecord) -> dict[str, Spoken]:
        """The protocols that each party of a job speaks, as far as it was heard."""
        others = {
            name: self.beats[name].beat.spoken
            for name in self._others(record)
            if name in self.beats
        }
        return {self.me: OWN, **others}

    def _no_common_protocol(self, record: JobRecord) -> str:
        spoken = self._spoken(record).items()
        told = ", ".join(f"{name} speaks {in_words(one)}" for name, one in spoken)
        return f"no protocol is common to all ({told}): install the same release at each"

    def missing(self, record: JobRecord) -> list[str]:
        """Reasons why a run cannot begin now: one line per party that is away or does not fit."""
        found = [f"the disk of {self.me}'s own store is full"] if self._home.room.full else []
        presence = self._links.presence()
        now = time.monotonic()
        for name in self._others(record):
            last = self.beats.get(name)
            if name not in presence:
                # A job of an earlier federation file.
                found.append(f"{name} is not in the federation file any more")
            elif not presence[name].up or last is None:
                since = now - presence[name].changed if presence[name].changed else 0
                fault = f" ({presence[name].fault})" if presence[name].fault else ""
                found.append(f"{name} is not connected, since {since:.0f} s{fault}")
            elif newest_common([OWN, last.beat.spoken]) is None:
                found.append(
                    f"{name} runs vertikal {last.beat.version} ({in_words(last.beat.spoken)}), "
                    f"{self.me} runs {__version__} ({in_words(OWN)}): install the same release, or "
                    "one next to it"
                )
            elif now - last.received > FRESH:
                found.append(f"{name} is silent for {now - last.received:.0f} s")
            elif last.beat.full:
                found.append(f"the disk of {name}'s store is full")
        if not found and newest_common(self._spoken(record).values()) is None:
            found.append(self._no_common_protocol(record))
        return found
