"""What a party knows of jobs, what it decides, and what it tells the others.

Every party keeps all proposals and decisions that concern it and tells them to whoever lacks them,
so it does not matter who was there when. The leader of a job, its first label party, begins a run
once all have approved and are there. Each party checks for itself, before it touches its data, that
all have signed exactly this job and that its own policy allows it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from vertikal.errors import DiskFull, IdentityError, InputError, VertikalError
from vertikal.mesh.wire import MAX_NAME
from vertikal.node.approval import proposals
from vertikal.node.approval.automatic_approval import BY_RULE, AutomaticApproval
from vertikal.node.approval.job_records import JobBook, Record
from vertikal.node.approval.offers import TableSummary, summarise_table
from vertikal.node.approval.policy import check_policy
from vertikal.node.approval.proposals import APPROVE, CANCEL, REJECT, STOP, Proposal, Signed
from vertikal.node.config.job_file import Job
from vertikal.node.links.heartbeats import Joining, cut
from vertikal.node.links.messages import Answered, Asked, Beat, Begin, JobNews, Message, pack
from vertikal.node.links.standing_links import MAX_CONTROL, StandingLinks
from vertikal.node.printable import printable
from vertikal.node.storage.party_home import PartyHome
from vertikal.version import __version__

FRESH = 5.0
"""Seconds after which a peer's beat says nothing about now."""
LONGEST_PAUSE = 60.0
MOST_JOB = MAX_CONTROL - (4 << 10)
"""Bytes of a proposal, so that it fits into a control message with names and signatures."""


def pause(attempts: int) -> float:
    """Seconds between the beginnings of two runs: longer, the more of them were broken off."""
    return min(LONGEST_PAUSE, 0.5 * 2.0**attempts) if attempts else 0.0


class Council:
    """One party's part in all decisions about jobs."""

    def __init__(
        self,
        home: PartyHome,
        book: JobBook,
        is_running: Callable[[str], bool],
        begin: Callable[[Record], None],
        say: Callable[[str], None],
        wake: Callable[[], None],
    ) -> None:
        self._home = home
        self._book = book
        self._is_running = is_running
        self._begin = begin
        self._say = say
        self._wake = wake
        self._considering = AutomaticApproval(home, book, self._approve, self._reject, say)
        self._refused: set[str] = set()
        self._begun: dict[str, float] = {}
        self._joining = Joining()
        self._told: dict[str, dict[str, JobNews]] = {}
        self.beats: dict[str, tuple[Beat, float, float]] = {}
        """By peer: its last beat, when it came by the steady clock, and its clock's lead."""
        self.links: StandingLinks

    # What the owner asks for.

    def submit(self, name: str, job: Job) -> Record:
        """Submit a job as its leader; by submitting, this party approves."""
        home = self._home
        for record in self._book.all():
            if (record.proposal.name, record.proposal.job) == (name, job) and record.open:
                raise InputError(
                    f"this job is job {record.number} already ({record.state(home.me)}); "
                    f"`vertikal job cancel {record.number}` would end it"
                )
        seen = self.look(job, name)
        signed = proposals.propose(name, job, home.me, seen.rows, home.keys)
        if len(signed.raw) > MOST_JOB:
            raise InputError(
                f"job: it would take {len(signed.raw)} bytes to send, at most {MOST_JOB} are "
                "allowed; a party whose columns are not listed brings all that it offers"
            )
        with self._book.lock:
            record = self._book.add(signed, proposals.decode_proposal(signed))
            self._decide(record, APPROVE, "", seen)
        return record

    def look(self, job: Job, name: str = "plan") -> TableSummary:
        """This party's own table of a job that it may submit.

        What does not fit its own file is refused here, before anybody hears of the job.
        """
        home = self._home
        proposals.check_name(name)
        job.check()
        job.check_for_services()
        if job.leader != home.me:
            raise InputError(
                f"a job is submitted by its first label party, {job.leader!r}, got {home.me!r}"
            )
        proposals.check_members(job, home.federation.names)
        draft = Proposal(name, job, home.me, time.time(), __version__, 0, "")
        check_policy(home.file, draft)
        return summarise_table(home, draft)

    def approve(self, number: int) -> Record:
        """Approve exactly this job; from now on a run of it may read this party's table."""
        record = self._undecided(number)
        self._approve(record)
        return record

    def reject(self, number: int, words: str) -> Record:
        record = self._undecided(number)
        self._reject(record, words)
        return record

    def cancel(self, number: int, words: str) -> Record:
        """End a job, whoever submitted it."""
        record = self._book.numbered(number)
        if not self.alive(record):
            raise InputError(f"job {number} has ended already: {record.state(self._home.me)}")
        self._decide(record, CANCEL, words)
        return record

    def stop(self, record: Record, public: str, own: str) -> None:
        """End a job that cannot go on; the others hear ``public`` words, the owner its own."""
        with self._book.lock:
            if record.final is None and not record.done:
                record.words = own
                self._decide(record, STOP, public)

    def alive(self, record: Record) -> bool:
        """Whether something can still happen to this job, as far as this party knows."""
        if not record.settled and self.done_by_all(record):
            # For good: peers stop speaking of it once they know the same. Without room to write
            # this down it is spoken of for longer.
            with suppress(DiskFull), self._book.changing(record):
                record.settled = True
        return record.final is None and not record.settled

    def done_by_all(self, record: Record) -> bool:
        if not record.done:
            return False
        news = [self.news(name, record) for name in record.proposal.job.names if name != self.me]
        return all(one is not None and one.done for one in news)

    @property
    def me(self) -> str:
        return self._home.me

    def news(self, peer: str, record: Record) -> JobNews | None:
        """What a peer said last about a job."""
        return self._told.get(peer, {}).get(record.digest)

    def _undecided(self, number: int) -> Record:
        record = self._book.numbered(number)
        if not record.open or record.verdict(self.me):
            raise InputError(f"job {number} is decided already: {record.state(self.me)}")
        return record

    def _approve(self, record: Record, words: str = "") -> None:
        check_policy(self._home.file, record.proposal)
        self._decide(record, APPROVE, words, summarise_table(self._home, record.proposal))

    def _reject(self, record: Record, words: str) -> None:
        self._decide(record, REJECT, words)

    def _decide(
        self, record: Record, verdict: str, words: str, seen: TableSummary | None = None
    ) -> None:
        signed = proposals.decide(record.digest, self.me, verdict, words, self._home.keys)
        with self._book.changing(record):
            if seen is not None:
                record.columns, record.table = seen.columns, seen.digest
            news = record.add(signed, proposals.read_decision(signed, self._home.keys))
            if news and (verdict, words) == (APPROVE, BY_RULE):
                record.by_rule = time.time()
        self._home.note(verdict, record.facts, words)
        self._say(f"job {record.number}: {record.state(self.me)}")
        for name in record.proposal.job.names:
            if name != self.me:
                self._send_all(name, record)
        self._wake()

    def take_up(self) -> None:
        """Consider the jobs that wait for a decision that this party can make by itself."""
        self._considering.begin_all()

    # What comes from the others.

    def heard(self, sender: str, message: Message) -> None:
        """One message of a peer, its signature checked."""
        if isinstance(message, Beat):
            self._on_beat(sender, message)
        elif isinstance(message, Asked):
            self._on_asked(sender, message.proposal)
        elif isinstance(message, Answered):
            self._on_answered(sender, message.decision)
        elif isinstance(message, Begin):
            self._on_begin(sender, message)

    def _on_asked(self, sender: str, signed: Signed) -> None:
        digest = signed.digest
        if self._book.find(digest) is not None or digest in self._refused:
            return
        try:
            members = self._home.federation.names
            proposal = proposals.read_proposal(signed, self.me, members, self._home.keys)
            proposals.check_age(proposal, self.me)
        except (InputError, IdentityError) as error:
            self._refused.add(digest)
            self._home.note_refusal(sender, f"job {digest[:12]}: {error}")
            self._say(f"refused a job that {sender} sent: {error}")
            return
        with self._book.lock:
            if self._book.find(digest) is not None:
                return
            record = self._book.add(signed, proposal)
            with self._book.changing(record):
                pass
        self._home.note("asked", record.facts, f"by {proposal.submitter}")
        self._say(f"job {record.number}: {proposal.submitter} asks, `vertikal job show` tells more")
        self._considering.begin([record])

    def _on_answered(self, sender: str, signed: Signed) -> None:
        try:
            decision = proposals.read_decision(signed, self._home.keys)
        except VertikalError as error:
            self._home.note_refusal(sender, str(error))
            return
        with self._book.lock:
            record = self._book.find(decision.digest)
            if record is None or not record.is_news(decision):
                return
            with self._book.changing(record):
                record.add(signed, decision)
        self._home.note(f"{decision.verdict} of {decision.party}", record.facts, decision.words)
        words = f": {decision.words}" if decision.words else ""
        self._say(f"job {record.number}: {decision.verdict} by {decision.party}{words}")
        if record.leads(self.me):
            for name in record.proposal.job.names:
                if name not in (self.me, decision.party):
                    self.tell(name, Answered(signed))

    def _on_begin(self, sender: str, message: Begin) -> None:
        record = self._book.find(message.digest)
        if record is None or sender != record.proposal.job.leader:
            self._home.note_refusal(sender, f"a run of job {message.digest[:12]} it may not begin")
            return
        self.try_begin(record, message.attempt)

    def try_begin(self, record: Record, attempt: int) -> None:
        """Take part in a run, if everything that this party has to check is as it must be."""
        with self._book.lock:
            fit = record.final is None and record.approved_by_all and attempt > record.attempt
            if not fit or self._is_running(record.digest):
                return
            try:
                check_policy(self._home.file, record.proposal)
                if attempt > self._home.policy.most_attempts:
                    raise InputError(f"{self.me} takes part in no more runs of this job")
            except InputError as error:
                self.stop(record, str(error), str(error))
                return
            with self._book.changing(record):
                record.attempt = attempt
        self._begin(record)

    # Beats: what each party knows, every second.

    def beat(self) -> None:
        """Tell every peer what this party knows, and begin what can begin."""
        was_full, full = self._home.room.full, not self._home.has_room()
        if was_full and not full:
            self.take_up()
        for name, one in self.links.presence().items():
            if one.up:
                try:
                    for part in cut(Beat(__version__, time.time(), self._news_for(name), full)):
                        self.tell(name, part)
                except Exception as error:
                    # The others must hear of this party all the same.
                    self._say(f"a beat to {name} failed: {type(error).__name__}: {error}")
        for record in self._book.all():
            if record.leads(self.me) and record.final is None and record.approved_by_all:
                self._lead(record)

    def _news_for(self, peer: str) -> tuple[JobNews, ...]:
        asked = {one.digest for one in self._told.get(peer, {}).values() if one.alive}
        return tuple(
            JobNews(
                record.digest,
                record.attempt,
                self._is_running(record.digest),
                record.done,
                tuple(record.decisions),
                record.final is not None,
                self.alive(record),
            )
            for record in self._book.all()
            if peer in record.proposal.job.parties
            and (self.alive(record) or record.digest in asked)
        )

    def _on_beat(self, sender: str, part: Beat) -> None:
        beat = self._joining.add(sender, part)
        if beat is None:
            return
        beat = msgspec.structs.replace(beat, version=printable(beat.version)[:MAX_NAME])
        before = self.beats.get(sender)
        self.beats[sender] = (beat, time.monotonic(), beat.time - time.time())
        told = self._told[sender] = {one.digest: one for one in beat.jobs}
        if before is None or (before[0].jobs, before[0].full) != (beat.jobs, beat.full):
            self._wake()
        for record in self._book.all():
            if sender not in record.proposal.job.parties:
                continue
            theirs = told.get(record.digest)
            if theirs is None:
                if record.open:
                    self._send_all(sender, record)
            elif record.final is not None and not theirs.final:
                self._send_all(sender, record)
            else:
                for party, (signed, _) in list(record.decisions.items()):
                    if party not in theirs.known:
                        self.tell(sender, Answered(signed))

    def _lead(self, record: Record) -> None:
        """Begin a run of a job of mine, if all are there and idle."""
        others = [name for name in record.proposal.job.names if name != self.me]
        if self._is_running(record.digest):
            for name in others:
                news = self.news(name, record)
                if news is not None and news.attempt < record.attempt:
                    self.tell(name, Begin(record.digest, record.attempt))
            return
        if not self.alive(record) or self.missing(record):
            return
        if time.monotonic() - self._begun.get(record.digest, -math.inf) < pause(record.attempt):
            return
        told = [self.news(name, record) for name in others]
        attempts = [news.attempt for news in told if news is not None and not news.running]
        if len(attempts) == len(others):
            attempt = max(record.attempt, *attempts) + 1
            self._begun[record.digest] = time.monotonic()
            self.try_begin(record, attempt)
            if self._is_running(record.digest):
                for name in others:
                    self.tell(name, Begin(record.digest, attempt))

    def missing(self, record: Record) -> list[str]:
        """Why a run cannot begin now, one line per party that is not there or does not fit."""
        found = [f"the disk of {self.me}'s own store is full"] if self._home.room.full else []
        presence = self.links.presence()
        for name in record.proposal.job.names:
            if name == self.me:
                continue
            entry = self.beats.get(name)
            if name not in presence:
                # A job of an earlier federation file.
                found.append(f"{name} is not in the federation file any more")
            elif not presence[name].up or entry is None:
                since = time.monotonic() - presence[name].changed if presence[name].changed else 0
                told = f" ({presence[name].fault})" if presence[name].fault else ""
                found.append(f"{name} is not connected, since {since:.0f} s{told}")
            elif entry[0].version != __version__:
                found.append(
                    f"{name} runs vertikal {entry[0].version}, {self.me} runs {__version__}: "
                    "install the same release"
                )
            elif time.monotonic() - entry[1] > FRESH:
                found.append(f"{name} is silent for {time.monotonic() - entry[1]:.0f} s")
            elif entry[0].full:
                found.append(f"the disk of {name}'s store is full")
        return found

    def _send_all(self, name: str, record: Record) -> None:
        """Everything signed that this party has about a job."""
        self.tell(name, Asked(record.signed))
        for signed, _ in list(record.decisions.values()):
            self.tell(name, Answered(signed))

    def tell(self, name: str, message: Message) -> None:
        """Send a message to a peer, signed; lost if there is no link."""
        self.links.tell(name, pack(self.me, name, message, self._home.keys))
