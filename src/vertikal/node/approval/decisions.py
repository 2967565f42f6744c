"""Decisions about jobs: this party submits, approves, rejects and cancels, and lets runs begin.

The leader of a job, its first label party, submits it; every other party answers with a decision of
its own, signed. Before a run touches its data, each party checks for itself that all have approved
exactly this job and that its own policy allows it. `automatic_approval.py` decides what the owner
need not be asked, `policy.py` says what the owner forbids, and `links/gossip.py` brings decisions
to the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from vertikal.errors import IdentityError, InputError, VertikalError
from vertikal.node.approval import proposals
from vertikal.node.approval.automatic_approval import BY_RULE, DAY, AutomaticApproval
from vertikal.node.approval.disclosure_limit import check_limit
from vertikal.node.approval.job_records import JobBook, JobRecord
from vertikal.node.approval.offers import (
    TableSummary,
    open_table,
    summarise_table,
    used_columns,
)
from vertikal.node.approval.policy import check_attempt, check_ids, check_policy
from vertikal.node.approval.proposal_hook import ProposalHook
from vertikal.node.approval.proposals import APPROVE, CANCEL, REJECT, STOP, Proposal, SignedBytes
from vertikal.node.config.job_file import Job
from vertikal.node.rate_limit import RateLimit
from vertikal.node.storage.party_home import PartyHome
from vertikal.version import __version__

MOST_REFUSED = 10_000
"""Refused proposals that are remembered, so that each is noted once."""
TELL = 3600.0
"""Seconds between two lines which say that a submitter has sent more than it may."""


class Peers(Protocol):
    """The other parties, as far as decisions need them; `links/gossip.py` has them."""

    def share(self, record: JobRecord) -> None:
        """Send the other parties of a job everything that was signed about it."""

    def pass_on(self, record: JobRecord, decision: SignedBytes, decided_by: str) -> None:
        """Send one party's decision to all others."""

    def is_alive(self, record: JobRecord) -> bool:
        """Tell whether something can still happen to a job at any party."""


class Runs(Protocol):
    """This party's runs, as far as decisions need them."""

    def is_running(self, digest: str) -> bool: ...

    def begin(self, record: JobRecord) -> None: ...


class Decisions:
    """All that one party decides about jobs."""

    def __init__(
        self,
        home: PartyHome,
        book: JobBook,
        peers: Peers,
        runs: Runs,
        say: Callable[[str], None],
    ) -> None:
        self._home = home
        self._book = book
        self._peers = peers
        self._runs = runs
        self._say = say
        self._proposals: dict[str, tuple[RateLimit, RateLimit]] = {}
        """By submitter: limits on its proposals, and on the lines that say that more came."""
        self._refused: dict[str, None] = {}
        """Digests of proposals and decisions that were refused, so that each is noted once."""
        self.hook = ProposalHook(home, say)
        self.automatic = AutomaticApproval(
            home, book, self._approve, self._reject, self.hook.tell, say
        )

    @property
    def me(self) -> str:
        return self._home.me

    # The owner's commands.

    def submit(self, name: str, job: Job) -> JobRecord:
        """Submit a job as its leader; by submitting, this party approves."""
        for record in self._book.all():
            if (record.proposal.name, record.proposal.job) == (name, job) and record.open:
                raise InputError(
                    f"this is job {record.id} already ({record.state(self.me)}); "
                    f"`vertikal job cancel {record.id}` would end it"
                )
        table = self.check_submission(job, name)
        signed = proposals.propose(name, job, self.me, table.rows, self._home.keys)
        with self._book.lock:
            record = self._book.add(signed, proposals.decode_proposal(signed))
            self._decide(record, APPROVE, "", table)
        return record

    def check_submission(self, job: Job, name: str = "plan") -> TableSummary:
        """Read this party's own table for a job that it may submit.

        What does not fit its own file is refused here, before anybody hears of the job.
        """
        return summarise_table(self._home, self._draft(job, name))

    def own_rows(self, name: str, job: Job) -> dict[bytes, bytes]:
        """Read a digest of each row of this party's own table, by id, for a job it may submit."""
        draft = self._draft(job, name)
        source = open_table(self._home, draft)
        digests = source.row_digests(used_columns(self._home, draft))
        return dict(zip(source.ids().values, digests, strict=True))

    def _draft(self, job: Job, name: str) -> Proposal:
        """Make the proposal of a job that this party may submit; refuse any other."""
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
        return draft

    def approve(self, job: str) -> JobRecord:
        """Approve exactly this job; from now on a run of it may read this party's table."""
        record = self._undecided(job)
        self._approve(record)
        return record

    def reject(self, job: str, reason: str) -> JobRecord:
        """Reject a job: it ends for everybody, who hear the reason."""
        record = self._undecided(job)
        self._reject(record, reason)
        return record

    def cancel(self, job: str, reason: str) -> JobRecord:
        """End a job, whoever submitted it."""
        record = self._book.named(job)
        if not self._peers.is_alive(record):
            raise InputError(f"job {record.id} has ended already: {record.state(self.me)}")
        self._decide(record, CANCEL, reason)
        return record

    def _undecided(self, job: str) -> JobRecord:
        record = self._book.named(job)
        if not record.open or record.verdict(self.me):
            raise InputError(f"job {record.id} is decided already: {record.state(self.me)}")
        if record.expired:
            raise InputError(
                f"job {record.id} has expired: it was to be approved within "
                f"{record.proposal.job.expires}; {record.proposal.submitter} may submit it again"
            )
        return record

    # This party's verdicts.

    def stop(self, record: JobRecord, public_reason: str, own_reason: str) -> None:
        """End a job that cannot go on; the others read one reason, the owner its own."""
        with self._book.lock:
            if record.final is None and not record.done:
                record.note = own_reason
                self._decide(record, STOP, public_reason)

    def end_expired(self) -> None:
        """End the jobs that this party leads and that others have not approved in time."""
        for record in self._book.all():
            if record.leads(self.me) and record.expired:
                names = ", ".join(record.undecided)
                reason = f"it expired: {names} did not decide within {record.proposal.job.expires}"
                self.stop(record, reason, reason)

    def _approve(self, record: JobRecord, reason: str = "") -> None:
        check_policy(self._home.file, record.proposal)
        check_limit(self._home, record.proposal, record.digest)
        table = summarise_table(self._home, record.proposal)
        check_ids(self._home.file, record, table.rows)
        self._decide(record, APPROVE, reason, table)

    def _reject(self, record: JobRecord, reason: str) -> None:
        self._decide(record, REJECT, reason)

    def _decide(
        self, record: JobRecord, verdict: str, reason: str, table: TableSummary | None = None
    ) -> None:
        """Sign a decision, write it down, and tell the others."""
        ids = 0 if table is None else table.ids
        signed = proposals.decide(record.digest, self.me, verdict, reason, self._home.keys, ids)
        with self._book.changing(record):
            if table is not None:
                record.columns, record.table = table.columns, table.digest
            is_new = record.add(signed, proposals.read_decision(signed, self._home.keys))
            if is_new and (verdict, reason) == (APPROVE, BY_RULE):
                record.by_rule = time.time()
        facts = dict(record.facts)
        if verdict == APPROVE:
            facts["not_compared"] = self._home.not_compared(record.proposal.job.names)
        self._home.note(verdict, facts, reason)
        self._say(f"job {record.id}: {record.state(self.me)}")
        self._peers.share(record)

    # Messages of the other parties.

    def forget_refusals(self) -> None:
        """After a change of keys or members, look anew at what was refused before it."""
        self._refused.clear()

    def take_proposal(self, sender: str, signed: SignedBytes) -> None:
        """Take in a proposal that a peer sent; refuse one that its submitter may not make."""
        digest = signed.digest
        if self._book.find(digest) is not None or signed.whole_digest in self._refused:
            return
        try:
            members = self._home.federation.names
            proposal = proposals.read_proposal(signed, self.me, members, self._home.keys)
            proposals.check_age(proposal, self.me)
        except (InputError, IdentityError) as error:
            self._refuse(signed)
            if self._home.note_refusal(sender, f"job {digest[:12]}: {error}"):
                self._say(f"refused a job that {sender} sent: {error}")
            return
        if not self._may_ask(proposal.submitter):
            return
        with self._book.lock:
            if self._book.find(digest) is not None:
                return
            record = self._book.add(signed, proposal)
            with self._book.changing(record):
                pass
        self._home.note("asked", record.facts, f"by {proposal.submitter}")
        self._say(f"job {record.id}: {proposal.submitter} asks, `vertikal job show` tells more")
        self.automatic.begin([record])

    def _refuse(self, signed: SignedBytes) -> None:
        self._refused[signed.whole_digest] = None
        if len(self._refused) > MOST_REFUSED:
            del self._refused[next(iter(self._refused))]

    def _may_ask(self, submitter: str) -> bool:
        """Count a proposal of this submitter; False if it had as many as the policy allows.

        What is left aside is not forgotten: the submitter's beats bring it again.
        """
        most = self._home.policy.proposals_per_day
        if submitter not in self._proposals:
            self._proposals[submitter] = RateLimit(most, DAY), RateLimit(1, TELL)
        limit, telling = self._proposals[submitter]
        if limit.take():
            return True
        if telling.take():
            reason = (
                f"at most {most} proposals of {submitter} a day are taken in (proposals_per_day); "
                "more came, which wait"
            )
            if self._home.note_refusal(submitter, reason):
                self._say(reason)
        return False

    def take_decision(self, sender: str, signed: SignedBytes) -> None:
        """Take in a decision that a peer sent, its own or another's; the leader passes it on."""
        if signed.whole_digest in self._refused:
            return
        try:
            decision = proposals.read_decision(signed, self._home.keys)
        except VertikalError as error:
            self._refuse(signed)
            self._home.note_refusal(sender, str(error))
            return
        with self._book.lock:
            record = self._book.find(decision.digest)
            if record is None or not record.is_news(decision):
                return
            with self._book.changing(record):
                record.add(signed, decision)
        self._home.note(f"{decision.verdict} of {decision.party}", record.facts, decision.words)
        reason = f": {decision.words}" if decision.words else ""
        self._say(f"job {record.id}: {decision.verdict} by {decision.party}{reason}")
        if record.leads(self.me):
            self._peers.pass_on(record, signed, decision.party)

    def take_begin(self, sender: str, digest: str, attempt: int, protocol: int) -> None:
        """Take part in a run that the leader of a job begins; nobody else may begin one."""
        record = self._book.find(digest)
        if record is None or sender != record.proposal.job.leader:
            self._home.note_refusal(sender, f"a run of job {digest[:12]} it may not begin")
            return
        self.try_begin(record, attempt, protocol)

    def try_begin(self, record: JobRecord, attempt: int, protocol: int) -> None:
        """Begin a run here if all have approved the job and this party's policy allows the run.

        A policy that forbids it by now ends the job.
        """
        with self._book.lock:
            fit = record.final is None and record.approved_by_all and attempt > record.attempt
            if not fit or self._runs.is_running(record.digest):
                return
            try:
                check_policy(self._home.file, record.proposal)
                check_limit(self._home, record.proposal, record.digest)
                check_attempt(self._home.file, attempt)
            except InputError as error:
                self.stop(record, str(error), str(error))
                return
            with self._book.changing(record):
                record.attempt, record.protocol = attempt, protocol
        self._runs.begin(record)
