"""Predictions of one party: those that its owner asks for, and those that other leaders ask for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from vertikal.errors import InputError, PeerStopped
from vertikal.node.approval.job_records import JobBook, JobRecord
from vertikal.node.links.gossip import Gossip
from vertikal.node.links.messages import Serve
from vertikal.node.links.standing_links import StandingLinks
from vertikal.node.models.job_models import JobModels
from vertikal.node.models.succession import usable
from vertikal.node.predictions.partial_scores import PartialScores, score_what_is_allowed
from vertikal.node.predictions.session_pool import SessionPool
from vertikal.node.storage.party_home import PartyHome

SETTLING = 10.0
"""Seconds that a prediction waits for the end of its job at the other parties."""
POLL = 0.02


class Predictor:
    """Finds the job of a model, sees that all parties are there, and asks them in a session."""

    def __init__(
        self,
        home: PartyHome,
        book: JobBook,
        links: StandingLinks,
        gossip: Gossip,
        say: Callable[[str], None],
    ) -> None:
        self._home = home
        self._book = book
        self._gossip = gossip
        self._say = say
        self._models = JobModels(home)
        self._sessions = SessionPool(home, links, self._models, self._open_session, say)

    def predict(
        self, name: str, ids: tuple[str, ...], degraded: bool | None, version: int | None
    ) -> list[dict[str, Any]]:
        """Score these ids by a model that this party leads, one record per id.

        ``degraded`` also scores ids that some party lacks; None leaves that to the policy.
        """
        me = self._home.me
        record = self._job_of(name, version)
        job = record.proposal.job
        if not record.leads(me):
            raise InputError(
                f"model {name!r}: predictions are asked for by {job.leader}, which holds the labels"
            )
        if not record.done:
            raise InputError(
                f"model {name!r}: job {record.id} is not done at all parties yet "
                f"({record.state(me)})"
            )
        if degraded is None:
            degraded = self._home.policy.unknown_ids == "degraded"
        missing = self._gossip.missing(record)
        if missing:
            raise PeerStopped(f"predictions need every party: {'; '.join(missing)}")
        self._await_end_at_others(record)
        began = time.monotonic()
        scores = self._sessions.ask(record, ids, degraded)
        self._home.log.record(
            "predictions",
            model=name,
            digest=record.digest,
            rows=len(ids),
            request=scores.request,
        )
        self._say(f"model {name}: {len(ids)} scores in {time.monotonic() - began:.3f} s")
        return scores.rows()

    def score(
        self, name: str, ids: tuple[str, ...], degraded: bool | None, version: int | None
    ) -> PartialScores:
        """Score as many of these ids as all parties allow."""
        return score_what_is_allowed(lambda some: self.predict(name, some, degraded, version), ids)

    def serve(self, sender: str, digest: str, session: str, protocol: int) -> None:
        """Take part in a session that the leader of a job opens, if the job is done here."""
        record = self._book.find(digest)
        if record is None or not record.leads(sender) or not record.done:
            self._home.note_refusal(sender, f"predictions with job {digest[:12]}")
            return
        self._sessions.serve(record, session, protocol)

    def tidy(self) -> None:
        """Let go of sessions, models and tables that are not needed any more; never waits."""
        self._sessions.tidy()

    def close(self) -> None:
        """End all sessions; requests under way fail, and no other begins."""
        self._sessions.close()

    def _await_end_at_others(self, record: JobRecord) -> None:
        """Wait until a job is done at the others too: their runs end a moment after the leader's.

        A party refuses a session of a job that is not done there, and the leader would wait for it.
        """
        since = time.monotonic()
        while names := self._gossip.not_done(record):
            if time.monotonic() - since > SETTLING:
                raise PeerStopped(
                    f"predictions need every party: job {record.id} is not done at "
                    f"{', '.join(names)}, {SETTLING:g} s after this was asked"
                )
            time.sleep(POLL)

    def _job_of(self, name: str, version: int | None) -> JobRecord:
        """Find the job of this version, or of the newest version that may predict and is done.

        A shard is stored before all parties are done, so its job may be under way, or stopped. A
        version that was kept back is only used if it is asked for by its number.
        """
        manifest = self._models.show(name, version)
        record = self._book.find(str(manifest.facts.get("job")))
        if version is None:
            stored = usable(one for one in self._models.versions() if one.name == name)
            jobs = [self._book.find(str(one.facts.get("job"))) for one in stored]
            record = next((job for job in reversed(jobs) if job and job.done), record)
        if record is None:
            raise InputError(f"model {name!r} was not trained by a job that this party knows")
        return record

    def _open_session(self, record: JobRecord, session: str) -> int:
        """Ask the others to take part in a session; return the protocol that it speaks."""
        protocol = self._gossip.protocol(record)
        for name in record.proposal.job.names:
            if name != self._home.me:
                self._gossip.tell(name, Serve(record.digest, session, protocol))
        return protocol
