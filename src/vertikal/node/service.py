"""A party's service: links, jobs, runs and predictions in one process, and the owner's commands."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vertikal.errors import (
    IdentityError,
    InputError,
    VertikalError,
    WireError,
)
from vertikal.node.approval.catalog import NONE, CatalogEntry, OwnCatalog
from vertikal.node.approval.decisions import Decisions
from vertikal.node.approval.job_description import describe
from vertikal.node.approval.job_details import decisions_of, job_details
from vertikal.node.approval.job_records import JobBook, JobRecord
from vertikal.node.approval.table_changes import TableChanges
from vertikal.node.approval.table_check import check_tables
from vertikal.node.backup.restored_mark import forget_mark, restored_mark
from vertikal.node.config.job_file import Job
from vertikal.node.control import ControlServer
from vertikal.node.http.server import HttpServer
from vertikal.node.job_summary import describe_run, summarise_job
from vertikal.node.links.catalog_exchange import WAIT, CatalogExchange
from vertikal.node.links.gossip import Gossip
from vertikal.node.links.link_meter import LinkMeter
from vertikal.node.links.message_queue import MessageQueue
from vertikal.node.links.messages import (
    Answered,
    Asked,
    Beat,
    Begin,
    CatalogAsked,
    CatalogTold,
    Changed,
    Message,
    Probe,
    Serve,
    unpack,
)
from vertikal.node.links.peer_description import describe_peers
from vertikal.node.links.protocols import OWN, in_words, is_spoken
from vertikal.node.links.standing_links import StandingLinks
from vertikal.node.membership import Membership
from vertikal.node.monitoring.health import health_of
from vertikal.node.monitoring.routes import monitor
from vertikal.node.monitoring.service_view import ServiceView
from vertikal.node.predictions.endpoint import Endpoint
from vertikal.node.printable import printable
from vertikal.node.runs.job_runs import JobRuns
from vertikal.node.runs.leader import Leader
from vertikal.node.storage.party_home import PartyHome
from vertikal.records import convert
from vertikal.version import __version__

if TYPE_CHECKING:
    from vertikal.node.predictions.predictor import Predictor

BEAT = 1.0
"""Seconds between beats, unless something happens that asks for one at once."""
NAP = 0.1
"""Seconds between beats at least."""


class Service:
    """One party between organisations: makes its parts, hands them messages and commands, beats."""

    def __init__(
        self, path: Path, say: Callable[[str], None], passphrase: bytes | None = None
    ) -> None:
        self.home = PartyHome(path, passphrase)
        self.me = self.home.me
        self._terminal = say
        self.book = JobBook(self.home.store / "jobs", self.home.keys, self._say)
        self._wake = threading.Event()
        """Set to ask for the next beat at once."""
        self.links = StandingLinks(
            self.me,
            self.home.federation,
            self.home.keys,
            self._on_control,
            self._on_presence,
            self._on_nonsense,
        )
        self.runs = JobRuns(
            self.home, self.book, self.links, self._stop_job, self._say, self._wake.set
        )
        self.gossip = Gossip(
            self.home, self.book, self.links, self.runs.is_running, self._say, self._wake.set
        )
        self.decisions = Decisions(self.home, self.book, self.gossip, self.runs, self._say)
        self.membership = Membership(
            self.home,
            self.book,
            self.links,
            self.gossip,
            self.decisions,
            self.runs,
            self._say,
        )
        self.view = ServiceView(
            self.home, self.book, self.links, self.runs.is_running, lambda: self.last_beat
        )
        self._leader = Leader(self.book, self.decisions, self.gossip, self.runs.is_running)
        self._meter = LinkMeter(self.gossip.tell)
        self.own_catalog = OwnCatalog(self.home, self._say)
        self._catalog = CatalogExchange(self.home, self.own_catalog, self.gossip.tell)
        self._slow = MessageQueue(self._take_in)
        self._predictor: Predictor | None = None
        self._control = ControlServer(self.home.store, self.answer)
        self._endpoint: Endpoint | None = None
        self._monitor: HttpServer | None = None
        self._faults: dict[str, str] = {}
        """By peer: why it cannot be reached, as it was said last."""
        self._stopped = threading.Event()
        self.last_beat = time.monotonic()
        """Time of the last beat, by the monotonic clock."""
        self._heart = threading.Thread(target=self._keep_beating, name="beat", daemon=True)
        self._commands: dict[str, Callable[..., Any]] = {
            "submit": self._submit,
            "list": self._list,
            "show": self._show,
            "follow": self._follow,
            "approve": self._approve,
            "reject": self._reject,
            "cancel": self._cancel,
            "peers": self._peers,
            "health": self._health,
            "catalog": self._list_offers,
            "plan": self._plan,
            "predict": self._predict,
            "score": self._score,
            "changes": self.membership.summary,
            "rotate": self.membership.rotate,
            "remove": self._remove,
            "accept": self._accept,
            "update": self._update,
        }

    def start(self) -> None:
        """Connect to the peers, answer the owner, and take up the jobs that wait."""
        not_compared = self.home.not_compared()
        self.home.log.record("started", library=__version__, not_compared=not_compared)
        if not_compared:
            self._say(
                f"keys not compared with {', '.join(not_compared)}: call them, and run `vertikal "
                "federation verify`"
            )
        self._end_restored_jobs()
        self.runs.sweep()
        self._slow.start()
        self.links.start()
        self._control.start()
        self._heart.start()
        self.decisions.automatic.begin_all()
        if self.home.file.http is not None:
            self._endpoint = Endpoint(self.home.file.http, self.home.folder, self.predict)
            self._endpoint.start()
            self._say(f"predictions are served at http port {self._endpoint.port}")
        if self.home.file.monitor is not None:
            self._monitor = monitor(self.home.file.monitor.listen, self.view)
            self._monitor.start()
            self._say(f"health and metrics are served at http port {self._monitor.port}")
        threading.Thread(target=self._prepare, name="preparation", daemon=True).start()

    def _end_restored_jobs(self) -> None:
        """End the jobs that were open in a backup: nobody knows what they have opened since."""
        mark = restored_mark(self.home.store)
        if mark is None:
            return
        for record in self.book.all():
            if record.open:
                reason = f"{self.me} was restored from a backup of {mark.backup[:10]}"
                self.decisions.stop(record, reason, reason)
        forget_mark(self.home.store)
        known = (
            "what was opened since is not known; `vertikal audit account` shows what is assumed"
            if mark.worst
            else "nothing happened since, by its owner's word"
        )
        self._say(f"restored from the backup of {mark.backup}: {known}")

    def _prepare(self) -> None:
        """While nobody waits: load what runs and predictions need, and look at the tables."""
        _load_libraries()
        self.own_catalog.begin_survey()
        try:
            for finding in check_tables(self.home.file, self.home.folder, cells=False):
                for problem in finding.problems:
                    self._say(f"table {finding.table}, which jobs cannot use now: {problem}")
        except Exception as error:
            self._say(f"the tables could not be looked at: {type(error).__name__}: {error}")

    def stop(self) -> None:
        """End all runs in good order; jobs go on when the service is started again."""
        self._stopped.set()
        self._wake.set()
        self._control.stop()
        self._slow.stop()
        self.decisions.hook.stop()
        for server in (self._endpoint, self._monitor):
            if server is not None:
                server.stop()
        self.runs.break_off()
        if self._predictor is not None:
            self._predictor.close()
        self.runs.join()
        if self._heart.is_alive():
            self._heart.join(5.0)
        self.links.stop()
        self.home.log.record("stopped")
        self.home.close()

    def _say(self, text: str) -> None:
        """Tell the owner something; text of other parties in it must not steer a terminal."""
        self._terminal(printable(text))

    # The owner's commands, over the control socket. Their arguments travel by these names.

    def answer(self, request: dict[str, Any]) -> Any:
        """Answer one command of the owner."""
        command = request.pop("command", None)
        handler = self._commands.get(str(command))
        if handler is None:
            raise InputError(
                f"the service knows no command {command!r}; it knows {', '.join(self._commands)}"
            )
        try:
            inspect.signature(handler).bind(**request)
        except TypeError as error:
            raise InputError(f"command {command!r}: {error}") from None
        answer = handler(**request)
        self._wake.set()
        return answer

    def _submit(self, name: str, job: dict[str, Any], least_change: int | None = None) -> Any:
        content = _job(job)
        if least_change is None:
            return self._summary(self.decisions.submit(name, content))
        rows = self.decisions.own_rows(name, content)
        changes = TableChanges(self.home.store / "submitted")
        changed = changes.count(self.book.all(), name, rows)
        if changed is not None and changed < least_change:
            return {"changed": changed}
        record = self.decisions.submit(name, content)
        changes.keep(record.digest, rows)
        return self._summary(record)

    def _list(self) -> Any:
        return [self._summary(record) for record in self.book.all()]

    def _show(self, job: str) -> Any:
        record = self.book.named(job)
        summary = self._summary(record)
        return {
            **summary,
            "text": describe(self.home, record, summary["state"]),
            "details": job_details(self.home, record, self.book.all()),
            "run": describe_run(self.runs.run_of(record)),
        }

    def _follow(self, job: str) -> Any:
        """Tell of a job what changes while it runs, without what takes time to describe."""
        record = self.book.named(job)
        return {
            **self._summary(record),
            "parties": decisions_of(record),
            "run": describe_run(self.runs.run_of(record)),
        }

    def _approve(self, job: str) -> Any:
        return self._summary(self.decisions.approve(job))

    def _reject(self, job: str, words: str = "") -> Any:
        return self._summary(self.decisions.reject(job, words))

    def _cancel(self, job: str, words: str = "") -> Any:
        record = self.decisions.cancel(job, words)
        self.runs.end(record, f"{self.me} cancelled the job")
        return self._summary(record)

    def _summary(self, record: JobRecord) -> dict[str, Any]:
        run = self.runs.run_of(record)
        return summarise_job(record, self.gossip, None if run is None else run.progress)

    def _health(self) -> Any:
        return health_of(self.view)[1]

    def _peers(self) -> Any:
        return describe_peers(
            self.home.federation,
            self.links.presence(),
            self.gossip.beats,
            self.home.not_compared(),
        )

    def _list_offers(self, names: list[str], mine: bool = False) -> Any:
        """List what other parties offer to this one, or with ``mine`` what they read of its own."""
        others = names or [name for name in self.home.federation.names if name != self.me]
        for name in others:
            self.home.federation.member(name)
        if mine:
            entries = {name: self.own_catalog.entry(name) for name in others}
            return [_offers_of(name, entry, "") for name, entry in entries.items()]
        there = [name for name in others if self.links.is_up(name)]
        answers = self._catalog.ask(there)
        late = f"no answer within {WAIT:g} s; its service may be busy, or of an older release"
        return [
            _offers_of(name, answers.get(name), late if name in there else "it is not connected")
            for name in others
            if name != self.me
        ]

    def _remove(self, names: list[str]) -> Any:
        self.membership.remove(names)
        return self.membership.summary()

    def _accept(self, digest: str) -> Any:
        self.membership.accept(digest)
        return self.membership.summary()

    def _update(self, file: str) -> Any:
        self.membership.update(Path(file))
        return self.membership.summary()

    def _plan(self, job: dict[str, Any]) -> Any:
        from vertikal.node.runs.plan import MeasuredLink, plan

        content = _job(job)
        # The first time libraries may be loaded, which a run does not wait for.
        self.decisions.check_submission(content)
        began = time.monotonic()
        table = self.decisions.check_submission(content)
        reading = time.monotonic() - began
        links = {}
        for name in content.names:
            if name != self.me and self.links.is_up(name):
                measured = self._meter.measure(name)
                if measured is not None:
                    links[name] = MeasuredLink(*measured)
        return msgspec.to_builtins(plan(content, table.rows, links, reading))

    def _predict(
        self, name: str, ids: list[str], degraded: bool | None = None, version: int | None = None
    ) -> Any:
        return self.predict(name, tuple(ids), degraded, version)

    def _score(
        self, name: str, ids: list[str], degraded: bool | None = None, version: int | None = None
    ) -> Any:
        return msgspec.to_builtins(self.predictor.score(name, tuple(ids), degraded, version))

    def predict(
        self, name: str, ids: tuple[str, ...], degraded: bool | None, version: int | None
    ) -> list[dict[str, Any]]:
        """Score these ids by a model that this party leads, one record per id."""
        return self.predictor.predict(name, ids, degraded, version)

    @property
    def predictor(self) -> Predictor:
        """The predictor; made when first needed, since it brings the algorithms' libraries."""
        from vertikal.node.predictions.predictor import Predictor

        with self.book.lock:
            if self._predictor is None:
                self._predictor = Predictor(
                    self.home, self.book, self.links, self.gossip, self._say
                )
            return self._predictor

    # Messages of the peers, over the links.

    def _on_control(self, sender: str, packed: bytes) -> None:
        """Take in one message, or put it in the queue of those that take time."""
        try:
            message = unpack(sender, self.me, packed, self.home.keys)
        except (WireError, IdentityError) as error:
            self._on_nonsense(sender, str(error))
            return
        if isinstance(message, Asked | Answered | Begin | CatalogAsked):
            # One that finds no room comes again: the sender's beats see to it.
            self._slow.put(sender, message, len(packed))
        else:
            self._take_in(sender, message)

    def _take_in(self, sender: str, message: Message) -> None:
        """Act on one message; whatever is wrong with it, the link that it came over stays."""
        try:
            self._act_on(sender, message)
        except Exception as error:
            # Most likely the disk is full; the answers to later beats bring what was missed.
            self.home.mind_room(error)
            kind = "" if isinstance(error, VertikalError) else f"{type(error).__name__}: "
            self._say(f"a message of {sender} was not taken in: {kind}{error}")

    def _act_on(self, sender: str, message: Message) -> None:
        match message:
            case Beat():
                self.gossip.hear(sender, message)
                self.membership.hear(sender, message.federation)
            case Changed():
                self.membership.take(message.changes)
            case Asked():
                self.decisions.take_proposal(sender, message.proposal)
            case Answered():
                self.decisions.take_decision(sender, message.decision)
            case Begin():
                if self._speaks(sender, message.protocol):
                    self.decisions.take_begin(
                        sender, message.digest, message.attempt, message.protocol
                    )
            case Serve():
                if self._speaks(sender, message.protocol):
                    self.predictor.serve(sender, message.digest, message.session, message.protocol)
            case Probe():
                self._meter.hear(sender, message)
            case CatalogAsked():
                self._catalog.answer(sender, message)
            case CatalogTold():
                self._catalog.hear(sender, message)
        self.runs.end_finished()

    def _speaks(self, sender: str, protocol: int) -> bool:
        """Tell if this release speaks the protocol of a run or session; note it if it does not."""
        if is_spoken(protocol):
            return True
        self._on_nonsense(
            sender, f"a run with protocol {protocol}; this release speaks {in_words(OWN)}"
        )
        return False

    def _on_nonsense(self, sender: str, reason: str) -> None:
        """Note what a peer sent and this party refused; a log that fails ends no link."""
        try:
            if self.home.note_refusal(sender, reason):
                self._say(f"refused a message of {sender}: {reason}")
        except Exception as error:
            self.home.mind_room(error)
            self._say(f"a message of {sender} was not taken in: {error}")

    def _on_presence(self, name: str, up: bool) -> None:
        self._say(f"{name} is {'connected' if up else 'not connected any more'}")
        self._wake.set()

    def _stop_job(self, record: JobRecord, public_reason: str, own_reason: str) -> None:
        self.decisions.stop(record, public_reason, own_reason)

    def beat(self) -> None:
        """Tell the peers what this party knows, and begin what can begin."""
        self.last_beat = time.monotonic()
        was_full = self.home.room.full
        has_room = self.home.has_room()
        if has_room and was_full:
            self.decisions.automatic.begin_all()
        self.gossip.beat()
        self._tell_faults()
        self._leader.begin_ready()
        if self._predictor is not None:
            self._predictor.tidy()
        if has_room:
            self.decisions.end_expired()

    def _tell_faults(self) -> None:
        """Say once why a peer cannot be reached."""
        for name, one in self.links.presence().items():
            if one.fault != self._faults.get(name, ""):
                self._faults[name] = one.fault
                if one.fault:
                    self._say(f"{name} is not connected: {one.fault}")

    def _keep_beating(self) -> None:
        while not self._stopped.is_set():
            self._wake.wait(BEAT)
            self._wake.clear()
            if not self._stopped.is_set():
                try:
                    self.beat()
                except Exception as error:
                    # A party that stops beating counts as lost, so it goes on after any error.
                    self.home.mind_room(error)
                    self._say(f"a beat failed: {type(error).__name__}: {error}")
                self._stopped.wait(NAP)


def _load_libraries() -> None:
    """Load what runs and predictions need."""
    from vertikal.node.predictions import predictor
    from vertikal.node.runs import party_run

    del predictor, party_run


def _offers_of(party: str, entry: CatalogEntry | None, fault: str) -> dict[str, Any]:
    """Describe a party's entry in the catalogue by plain values; ``fault`` if there is none."""
    told = msgspec.to_builtins(CatalogEntry(NONE) if entry is None else entry)
    return {"party": party, "fault": "" if entry else fault, **told}


def _job(content: dict[str, Any]) -> Job:
    """Read a job as a command brought it."""
    try:
        return convert(content, Job)
    except msgspec.ValidationError as error:
        raise InputError(f"job: {error}") from None
