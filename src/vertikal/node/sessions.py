"""All sessions of predictions of one party: those it leads, and those in which it serves."""

from __future__ import annotations

import secrets
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from vertikal.errors import MeshError, VertikalError
from vertikal.node.exchange import Exchange
from vertikal.node.files import DiskFull
from vertikal.node.jobs import Record
from vertikal.node.limits import DailyLimit
from vertikal.node.prediction import Refused, Scores, Session, words_for
from vertikal.node.runs import public_words
from vertikal.node.shelf import Shelf
from vertikal.node.site import Site

MOST_SESSIONS = 16
"""Sessions in which a party serves at once."""


class Predictions:
    """All sessions of one party: those it leads, and those in which it serves."""

    def __init__(self, site: Site, exchange: Exchange, open_session: Callable[[Record, str], None]):
        self._site = site
        self._exchange = exchange
        self._open = open_session
        self._shelf = Shelf(site)
        self._limit = DailyLimit(site.store / "predictions", site.policy.predictions_per_day)
        self._lock = threading.Lock()
        self._led: dict[str, Session] = {}
        self._serving = 0
        self._served: set[Session] = set()
        # Another lock: who asks holds its own for as long as the others take to answer.
        self._counting = threading.Lock()

    def ask(self, record: Record, ids: tuple[str, ...], degraded: bool) -> Scores:
        """The scores of these ids; after one that failed, the next request opens a new session."""
        with self._lock:
            session = self._led.get(record.digest)
            if session is not None and session.broken:
                self._close(record.digest, "a party was lost")
                session = None
            if session is None:
                name = f"predict/{record.digest}/{secrets.token_hex(8)}"
                self._open(record, name)
                session = Session(self._site, self._exchange, record, name, self._shelf)
                self._led[record.digest] = session
            try:
                return session.ask(ids, degraded)
            except Refused:
                # All parties have come to the end of the request: the session stays.
                raise
            except BaseException as error:
                self._close(record.digest, words_for(self._site.me, error))
                raise

    def serve(self, record: Record, name: str) -> None:
        """Take part in a session that the leader of ``record`` opened, in a thread of its own."""
        with self._counting:
            if self._serving >= MOST_SESSIONS:
                self._site.note_refusal(record.proposal.job.leader, "too many sessions at once")
                return
            self._serving += 1
        threading.Thread(target=self._serve, args=(record, name), daemon=True).start()

    def tidy(self) -> None:
        """Let go of what is not needed any more; to be called now and then, and never waits."""
        self._shelf.tidy()

    def close(self) -> None:
        """End all sessions; requests under way fail."""
        with self._counting:
            served = list(self._served)
        for session in [*served, *self._led.values()]:
            session.mesh.abandon("its service was stopped")
        with self._lock:
            for digest in list(self._led):
                self._close(digest, "its service was stopped")

    def _serve(self, record: Record, name: str) -> None:
        session = None
        try:
            session = Session(self._site, self._exchange, record, name, self._shelf)
            with self._counting:
                self._served.add(session)
            session.serve(self._limit)
            session.end()
        except Exception as error:
            # Whatever it is: the leader waits, and the mesh lives on, until the session is ended.
            self._break_off(record, session, error)
        finally:
            with self._counting:
                self._serving -= 1
                if session is not None:
                    self._served.discard(session)

    def _break_off(self, record: Record, session: Session | None, error: Exception) -> None:
        """End a session in which this party cannot go on; the owner finds the reason in the log."""
        with suppress(DiskFull):
            if session is not None:
                session.end(public_words(self._site.me, error))
        if not isinstance(error, MeshError):
            with suppress(DiskFull):
                self._site.note_refusal(record.proposal.job.leader, _reason(error))

    def _close(self, digest: str, words: str) -> None:
        self._led.pop(digest).end(words)


def _reason(error: Exception) -> str:
    """For the owner's log; of an error that is not Vertikal's own where, for its words may hold
    cells."""
    if isinstance(error, VertikalError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
