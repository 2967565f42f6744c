"""One session of predictions with a stored model, between the leader of its job and the others.

A session is a mesh and a party that stay while requests come. In each request the leader names the
ids that it asks for. Every other party checks that its policy allows so many rows today, and so
many questions about each person, answers which of the ids it knows, and takes part with its rows.
An id that a party lacks is left out. Where the leader asks for it and the others allow it, such an
id is scored all the same, with that party's columns at their training means, and flagged as
degraded. Before anything is computed, the parties compare what each was asked
(`request_comparison.py`). A dealer without data is told how many rows there are, and no id.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from vertikal.algorithms.catalogue import algorithm_named
from vertikal.data.tables import Table
from vertikal.errors import (
    AgreementError,
    DiskFull,
    InputError,
    MeshError,
    PeerVisibleError,
    PredictionRefused,
)
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.approval.policy import check_policy
from vertikal.node.links.protocols import protocol_name
from vertikal.node.links.run_mesh import RunMesh
from vertikal.node.links.standing_links import StandingLinks
from vertikal.node.models.score_reading import ScoreReading
from vertikal.node.peer_message import peer_message
from vertikal.node.predictions.booking import Booking
from vertikal.node.predictions.daily_limit import DailyLimit
from vertikal.node.predictions.model_cache import Model, ModelCache
from vertikal.node.predictions.request_comparison import RequestComparison
from vertikal.node.printable import printable
from vertikal.node.storage.party_home import PartyHome
from vertikal.node.storage.question_count import QuestionCount
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure
from vertikal.records import msgpack_reader

ASKED = Disclosure(
    "ids asked for",
    "the ids whose predictions the leader wants",
    "which people are being scored, whether the receiver has them or not",
    masked=False,
)
KNOWN = Disclosure(
    "ids known",
    "which of these ids the sender has",
    "which of the people it asks for the sender has",
    masked=False,
)
CHOSEN = Disclosure(
    "rows chosen", "which of the ids will be scored", "which ids all parties have", masked=False
)
COUNTED = Disclosure(
    "rows asked for",
    "how many rows the leader wants, and how many of them are scored",
    "a dealer without data learns these two numbers, and no id",
    masked=False,
)
WAIT = 30.0
"""Seconds that a request may wait for a party."""
PATIENCE = 5.0
"""Seconds that a party may be unreachable in a session, or not be there yet."""
IDLE = 120.0
"""Seconds without a request after which the leader ends a session; the others wait longer."""
LONGEST = 3600.0
"""Seconds after which another session takes the place of one."""
MOST_REQUESTS = 1000
"""Requests of one session: its keys and its ledger grow with each, until its end writes them to the
audit log."""


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request; one without rows ends the session. A dealer without data gets no ids."""

    rows: int
    ids: tuple[str, ...]
    degraded: bool


_read_request = msgpack_reader(_Request)


@dataclass(frozen=True)
class _Refusal:
    """The answer of a party that refuses a request, and what it would allow."""

    words: str
    left: int | None
    spent: tuple[int, ...]

    @classmethod
    def of(cls, told: dict[str, Any], rows: int) -> _Refusal:
        """Read what a peer told; what is no number of rows of the request counts as not told."""
        left, spent = told.get("left"), told.get("spent")
        listed = spent if isinstance(spent, list) else []
        return cls(
            printable(str(told.get("refused")))[:300],
            left if type(left) is int and 0 <= left < rows else None,
            tuple(one for one in listed if type(one) is int and 0 <= one < rows),
        )


def _joined(refusals: dict[str, _Refusal]) -> PredictionRefused:
    """Make one error of the refusals of several parties, in the words of the first."""
    name, first = next(iter(refusals.items()))
    error = PredictionRefused(f"{name} refused these predictions: {first.words}")
    if all(one.left is not None or one.spent for one in refusals.values()):
        left = [one.left for one in refusals.values() if one.left is not None]
        error.rows_left = min(left, default=None)
        error.rows_spent = tuple(sorted({row for one in refusals.values() for row in one.spent}))
    return error


@dataclass(frozen=True)
class Scores:
    """The score of each id that was asked for."""

    ids: tuple[str, ...]
    values: Any  # (ids, outputs) f; nan where it was not scored
    unknown: tuple[tuple[str, ...], ...]
    """By id: the parties that do not know it. With a value, the score is degraded."""
    request: str = ""
    """Digest of the request, the same in the audit logs of all that were told its ids."""

    reading: ScoreReading | None = None
    """The names of the model's classes; None where nothing was asked for."""

    def rows(self) -> list[dict[str, Any]]:
        """Make one record per id, for a file or an answer."""
        if self.reading is None:
            return []
        rows = []
        for one, f, unknown, record in zip(
            self.ids, self.values, self.unknown, self.reading.records(self.values), strict=True
        ):
            scored = bool(np.isfinite(f).all())
            status = "ok" if scored and not unknown else "degraded" if scored else "unknown"
            value = record.pop("value")
            told = {"id": one, "status": status, "value": value, "unknown_at": ", ".join(unknown)}
            rows.append(told | record)
        return rows


class PredictionSession:
    """One party's end of one session: `begin`, then `ask` or `serve`, then `end`.

    Its mesh is there from the start, so that another thread can break off every wait by abandoning
    it.
    """

    def __init__(
        self,
        home: PartyHome,
        links: StandingLinks,
        record: JobRecord,
        name: str,
        cache: ModelCache,
        protocol: int,
    ) -> None:
        self._home = home
        self._cache = cache
        self.record = record
        self._name = name
        self._algorithm = algorithm_named(record.proposal.job.algorithm)
        job = record.proposal.job
        self._bare_dealer = job.bare_dealer
        self.mesh = RunMesh(
            links,
            job.names,
            home.federation.credentials(home.identity),
            name=name,
            deadline=WAIT,
            patience=PATIENCE,
            protocol=protocol,
        )
        self._protocol = protocol
        self._party: Any = None
        self._comparison: RequestComparison | None = None
        """None at a dealer without data, which is told no ids."""
        self._over = False
        self._requests = 0
        self._began = self._used = time.monotonic()
        self._rows: Any = None
        """This party's rows in the request under way, of one reading of its table."""

    def begin(self) -> None:
        """Load the model and meet the others."""
        job = self.record.proposal.job
        try:
            # Inside this block, so that the others hear at once that this party has no model any
            # more, or that its owner has since forbidden what the job shows.
            if not self.record.leads(self._home.me):
                check_policy(self._home.file, self.record.proposal)
            self._model: Model = self._cache.model(self.record)
            self._party = Party(
                self.mesh,
                Table(self._home.me, (), np.zeros((0, 0))),
                label_parties=job.label_parties,
                labels=None,
                secret=bytes(32),  # nothing is drawn from it: the shard has its own seed
                job=self._name,
                settings_digest=self._model.digest,
                version=protocol_name(self._protocol),
                masking=job.masking,
                shape=job.shape,
            )
            if self._home.me != self._bare_dealer:
                self._comparison = RequestComparison(self._party, job.table_parties)
        except BaseException as error:
            if not isinstance(error, MeshError):
                # A party that has not met this one yet would not hear why it ends.
                with suppress(MeshError):
                    self.mesh.connect(PATIENCE)
            self.end(peer_message(self._home.me, error))
            raise

    def end(self, reason: str = "") -> None:
        """Let go of the mesh and write what was sent to the audit log; later calls do nothing."""
        if self._over:
            return
        self._over = True
        if reason:
            self.mesh.fail(reason)
        self.mesh.stop(1.0)
        if self._party is not None:
            self._home.note_ledgers("predictions", self._model.digest, [self._party.ledger])

    @property
    def broken(self) -> bool:
        return any(
            one.link in ("closed", "failed", "broken") for one in self.mesh.status().values()
        )

    @property
    def expired(self) -> bool:
        """True at the leader if it lies idle, or is so old that another takes its place."""
        now = time.monotonic()
        idle, old = now - self._used > IDLE, now - self._began > LONGEST
        return idle or old or self._requests >= MOST_REQUESTS

    def ask(self, ids: tuple[str, ...], degraded: bool) -> Scores:
        """Score these ids; only the leader calls it."""
        self._requests += 1
        self._used = time.monotonic()
        party = self._party
        self._model = self._cache.model(self._model.record)
        self._send_request(_Request(len(ids), ids, degraded))
        if not ids:
            return Scores((), np.zeros((0, 1)), ())
        request = self._digest(ids, degraded)
        self._rows = self._cache.rows(self._model)
        known = {party.name: self._rows.known(ids)}
        for name in self._others():
            known[name] = self._answer_of(name, len(ids))
        refusals = {name: told for name, told in known.items() if isinstance(told, _Refusal)}
        flags = {name: told for name, told in known.items() if not isinstance(told, _Refusal)}
        everywhere = np.logical_and.reduce(list(flags.values()))
        chosen = np.zeros(len(ids), bool)
        if not refusals:
            chosen = np.ones(len(ids), bool) if degraded else everywhere
        self._send_chosen(chosen)
        self._compare(request, chosen)
        # As the model was trained: a search may have chosen other settings than the job's first.
        settings = self._model.shard.settings
        values = np.full((len(ids), settings.outputs), np.nan)
        if chosen.any():
            values[chosen] = self._predict(ids, chosen)
        self._rows = None
        if refusals:
            raise _joined(refusals)
        unknown = tuple(
            tuple(name for name, flag in flags.items() if not flag[row]) for row in range(len(ids))
        )
        shard, classes = self._model.shard, self._model.manifest.facts.get("classes", ())
        reading = ScoreReading.of(self._algorithm, settings, shard, classes)
        return Scores(ids, values, unknown, request.hex(), reading)

    def serve(self, limit: DailyLimit, questions: QuestionCount) -> None:
        """Take part in requests until the leader has no more; all others call it."""
        for _ in range(MOST_REQUESTS):
            request = self._receive_request()
            if not request.rows:
                return
            digest = self._digest(request.ids, request.degraded)
            booking = Booking(limit, questions, self._model.digest)
            try:
                told = self._known(request, digest, booking)
                self._party.broadcast(told, (self._party.name, self._party.leader), KNOWN)
                chosen = self._receive_chosen()
                self._check_chosen(request, told, chosen)
                self._compare(digest, chosen)
                if chosen.any():
                    booking.keep()
                    self._predict(request.ids, chosen)
            finally:
                booking.end()

    def _check_chosen(self, request: _Request, told: Any, chosen: Any) -> None:
        """Refuse to score rows that were not asked for, or that this party refused or lacks."""
        leader, me = self._party.leader, self._party.name
        if len(chosen) > request.rows or (len(chosen) < request.rows and me != self._bare_dealer):
            raise MeshError(
                f"{leader} chose among {len(chosen)} rows, after it had asked for {request.rows}"
            )
        if not chosen.any():
            return
        if isinstance(told, dict):
            raise MeshError(f"{leader} chose rows that {me} has refused")
        # The other parties cannot see this, and the score would show their rows by themselves.
        if not request.degraded and not told[: len(chosen)][chosen].all():
            raise MeshError(f"{leader} chose rows that {me} does not have")

    def _digest(self, ids: tuple[str, ...], degraded: bool) -> bytes:
        """Compute the digest of a request; a dealer without data has none."""
        return b"" if self._comparison is None else self._comparison.digest(ids, degraded)

    def _compare(self, digest: bytes, chosen: Any) -> None:
        """Refuse a request that is another one at somebody else, before anything is computed."""
        if self._comparison is None:
            return
        try:
            self._comparison.compare(digest, chosen)
        except AgreementError as error:
            self._home.note_refusal(self._party.leader, f"request {digest.hex()}: {error}")
            raise
        except MeshError as error:
            # A leader that asks each for something else could end the session before all know.
            words = f"request {digest.hex()} ended before all had compared it: {error}"
            self._home.note_refusal(self._party.leader, words)
            raise

    def _known(self, request: _Request, digest: bytes, booking: Booking) -> Any:
        """Answer which of the ids asked for are known here, or why they are not to be predicted."""
        try:
            self._model = self._cache.model(self._model.record)
            self._check_degraded(request)
            booking.book_rows(request.rows)
            told = np.ones(request.rows, np.uint8)
            if self._party.name != self._bare_dealer:
                self._rows = self._cache.rows(self._model)
                told = self._rows.known(request.ids).astype(np.uint8)
                booking.book_questions(self._rows.held(request.ids))
            self._home.log.record(
                "predicted",
                peer=self._party.leader,
                rows=request.rows,
                model=self._model.digest,
                request=digest.hex(),
            )
        except DiskFull as error:
            return {"refused": peer_message(self._home.me, error)}
        except InputError as error:
            self._home.note_refusal(self._party.leader, str(error))
            refusal: dict[str, Any] = {"refused": peer_message(self._home.me, error)}
            if isinstance(error, PeerVisibleError):
                if error.rows_left is not None:
                    refusal["left"] = error.rows_left
                if error.rows_spent:
                    refusal["spent"] = list(error.rows_spent)
            return refusal
        return told

    def _check_degraded(self, request: _Request) -> None:
        """Refuse scores that may depend on this party's row alone, unless its owner allows them."""
        me = self._home.me
        if (
            request.degraded
            and me != self._bare_dealer
            and not self._home.policy.degraded_predictions
        ):
            raise PeerVisibleError(
                f"policy of {me}: no scores of ids that some party lacks; ask for those that all "
                f"have (--unknown reject), or let the owner of {me} set degraded_predictions"
            )

    def _predict(self, ids: tuple[str, ...], chosen: Any) -> Any:
        if self._party.name == self._bare_dealer:
            self._party.table = Table(self._party.name, (), np.empty((int(chosen.sum()), 0)))
        else:
            wanted = tuple(one for one, flag in zip(ids, chosen, strict=True) if flag)
            self._party.table = self._rows.table(self._model, wanted)
            self._cache.watch_people(self._model, self._rows, wanted)
        scores = self._algorithm.predict(self._party, self._model.shard)
        return None if scores is None else np.asarray(scores)

    def _others(self) -> tuple[str, ...]:
        return tuple(name for name in self._party.parties if name != self._party.leader)

    def _send_request(self, request: _Request) -> None:
        blind = msgspec.structs.replace(request, ids=())
        for name in self._others():
            told = msgspec.msgpack.encode(blind if name == self._bare_dealer else request)
            self._send(name, np.frombuffer(told, np.uint8), ASKED)

    def _send(self, name: str, told: Any, disclosure: Disclosure) -> None:
        """Send from the leader to another party; a dealer without data gets numbers of rows."""
        kind = COUNTED if name == self._bare_dealer else disclosure
        self._party.broadcast(told, (self._party.leader, name), kind)

    def _receive(self, disclosure: Disclosure) -> Any:
        """Receive from the leader what it sends by `_send`."""
        party = self._party
        kind = COUNTED if party.name == self._bare_dealer else disclosure
        return np.asarray(party.broadcast(None, (party.leader, party.name), kind))

    def _receive_request(self) -> _Request:
        party = self._party
        self._rows = None  # the next request may find another table
        with party.waiting(IDLE + WAIT):
            packed = self._receive(ASKED)
        try:
            request = _read_request(packed.tobytes())
        except (msgspec.DecodeError, ValueError) as error:
            raise MeshError(f"request of {party.leader}: {error}") from None
        expected = 0 if party.name == self._bare_dealer else request.rows
        if request.rows < 0 or len(request.ids) != expected:
            raise MeshError(
                f"request of {party.leader} for {request.rows} rows must name {expected} ids, got "
                f"{len(request.ids)}"
            )
        return request

    def _answer_of(self, name: str, rows: int) -> Any:
        told: Any = self._party.broadcast(None, (name, self._party.leader), KNOWN)
        if isinstance(told, dict):
            return _Refusal.of(told, rows)
        flags = np.asarray(told)
        if flags.dtype != np.uint8 or flags.shape != (rows,):
            raise MeshError(f"{self._party.name}: {name} answered with {flags.dtype} {flags.shape}")
        return flags.astype(bool)

    def _send_chosen(self, chosen: Any) -> None:
        flags = chosen.astype(np.uint8)
        for name in self._others():
            self._send(name, flags[chosen] if name == self._bare_dealer else flags, CHOSEN)

    def _receive_chosen(self) -> Any:
        return self._receive(CHOSEN).astype(bool)
