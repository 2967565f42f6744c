"""All sessions of predictions of one party: those it leads, and those in which it serves."""

from __future__ import annotations

import secrets
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from vertikal.errors import (
    DeadlineExceeded,
    DiskFull,
    MeshError,
    PeerStopped,
    PredictionRefused,
    VertikalError,
)
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.links.standing_links import StandingLinks
from vertikal.node.models.job_models import JobModels
from vertikal.node.peer_message import peer_message
from vertikal.node.predictions.daily_limit import DailyLimit
from vertikal.node.predictions.keyed_lock import KeyedLock
from vertikal.node.predictions.model_cache import ModelCache
from vertikal.node.predictions.session import WAIT, PredictionSession, Scores
from vertikal.node.storage.party_home import PartyHome
from vertikal.node.storage.question_count import QuestionCount

MOST_SESSIONS = 16
"""Sessions in which a party serves at once."""
CLOSING = 2.0
"""Seconds that a service which stops waits for a request under way."""


class SessionPool:
    """Opens, shares and ends the sessions of one party."""

    def __init__(
        self,
        home: PartyHome,
        links: StandingLinks,
        models: JobModels,
        open_session: Callable[[JobRecord, str], int],
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._home = home
        self._links = links
        self._open_session = open_session
        """Asks the other parties of a job to take part in the session of this name; returns the
        protocol that it speaks."""
        self._cache = ModelCache(home, models, say)
        self._limit = DailyLimit(home.store / "predictions", home.policy.predictions_per_day)
        self._questions = QuestionCount(home.store / "questions", home.policy.most_questions)
        # Requests with one model wait for one another, and for no other model's.
        self._locks = KeyedLock(WAIT)
        self._led: dict[str, PredictionSession] = {}
        # Never held while anybody is waited for.
        self._lock = threading.Lock()
        self._all: set[PredictionSession] = set()
        self._serving = 0
        self._closed = False

    def ask(self, record: JobRecord, ids: tuple[str, ...], degraded: bool) -> Scores:
        """Score these ids; after a request that failed, the next one opens a new session."""
        reason = f"{self._home.me}: other requests with this model are under way"
        with self._locks.hold(record.digest, reason):
            session = self._led.get(record.digest)
            if session is not None and (session.broken or session.expired):
                self._close(record.digest, "a party was lost" if session.broken else "")
                session = None
            try:
                if session is None:
                    session = self._lead(record)
                return session.ask(ids, degraded)
            except PredictionRefused:
                # All parties have come to the end of the request: the session stays.
                raise
            except BaseException as error:
                self._close(record.digest, peer_message(self._home.me, error))
                raise

    def serve(self, record: JobRecord, name: str, protocol: int) -> None:
        """Take part in a session that the leader of ``record`` opened, in a thread of its own."""
        with self._lock:
            full = self._serving >= MOST_SESSIONS
            self._serving += not full
        if full:
            self._home.note_refusal(record.proposal.job.leader, "too many sessions at once")
            return
        threading.Thread(target=self._serve, args=(record, name, protocol), daemon=True).start()

    def tidy(self) -> None:
        """End sessions that have expired and let go of models that lie idle; never waits."""
        self._cache.tidy()
        for digest, session in list(self._led.items()):
            # A session whose lock is held is in use.
            with suppress(DeadlineExceeded), self._locks.hold(digest, "", 0.0):
                if session.expired and self._led.get(digest) is session:
                    del self._led[digest]
                    threading.Thread(target=self._end, args=(session, ""), daemon=True).start()

    def close(self) -> None:
        """End all sessions; requests under way fail, and no other begins."""
        reason = "its service was stopped"
        with self._lock:
            self._closed = True
            sessions = list(self._all)
        for session in sessions:
            session.mesh.abandon(reason)
        for digest in list(self._led):
            # A request under way fails now, and its thread ends the session itself.
            with suppress(DeadlineExceeded), self._locks.hold(digest, "", CLOSING):
                self._close(digest, reason)

    def _lead(self, record: JobRecord) -> PredictionSession:
        name = f"predict/{record.digest}/{secrets.token_hex(8)}"
        protocol = self._open_session(record, name)
        session = self._led[record.digest] = self._enter(record, name, protocol)
        session.begin()
        return session

    def _serve(self, record: JobRecord, name: str, protocol: int) -> None:
        session = None
        try:
            session = self._enter(record, name, protocol)
            session.begin()
            session.serve(self._limit, self._questions)
            session.end()
        except Exception as error:
            # Whatever it is: the leader waits, and the mesh lives on, until the session is ended.
            self._break_off(record, session, error)
        finally:
            with self._lock:
                self._serving -= 1
                self._all -= {session}

    def _enter(self, record: JobRecord, name: str, protocol: int) -> PredictionSession:
        """Make a session; from now on `close` ends its waits, also those for a first contact."""
        with self._lock:
            if self._closed:
                raise PeerStopped(f"{self._home.me}: its service was stopped")
            session = PredictionSession(
                self._home, self._links, record, name, self._cache, protocol
            )
            self._all.add(session)
            return session

    def _break_off(
        self, record: JobRecord, session: PredictionSession | None, error: Exception
    ) -> None:
        """End a session in which this party cannot go on; the owner finds the reason in the log."""
        with suppress(DiskFull):
            if session is not None:
                session.end(peer_message(self._home.me, error))
        if not isinstance(error, MeshError):
            with suppress(DiskFull):
                self._home.note_refusal(record.proposal.job.leader, _reason(error))

    def _close(self, digest: str, reason: str) -> None:
        session = self._led.pop(digest, None)
        if session is not None:
            self._end(session, reason)

    def _end(self, session: PredictionSession, reason: str) -> None:
        with suppress(DiskFull):  # the line is written to the log when there is room again
            session.end(reason)
        with self._lock:
            self._all.discard(session)


def _reason(error: Exception) -> str:
    """Name an error in the owner's log.

    The message of a foreign exception may quote cells of a table, so only its place is named.
    """
    if isinstance(error, VertikalError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
