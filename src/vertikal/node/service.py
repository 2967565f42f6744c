"""A party's service: links, jobs, runs and predictions in one process, and the owner's commands."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vertikal.algorithms.catalogue import algorithm_named
from vertikal.errors import (
    DiskFull,
    IdentityError,
    InputError,
    PeerStopped,
    VertikalError,
    WireError,
)
from vertikal.node.approval.decisions import Council
from vertikal.node.approval.job_description import describe, summary
from vertikal.node.approval.job_records import JobBook, Record
from vertikal.node.config.job_file import Job
from vertikal.node.control import ControlServer
from vertikal.node.links.link_speed import LinkMeter
from vertikal.node.links.messages import Message, Probe, Serve, unpack
from vertikal.node.links.peers import peers
from vertikal.node.links.standing_links import StandingLinks
from vertikal.node.peer_message import peer_message
from vertikal.node.predictions.endpoint import Endpoint
from vertikal.node.printable import printable
from vertikal.node.runs.running_jobs import Run, all_checkpoints, is_passing
from vertikal.node.storage.party_home import PartyHome
from vertikal.records import convert

if TYPE_CHECKING:
    from vertikal.node.models.job_models import JobModels
    from vertikal.node.predictions.sessions import Predictions

BEAT = 1.0
"""Seconds between beats, where nothing happens that would make one sooner."""
NAP = 0.1
"""Seconds between beats at least."""


class Service:
    """One party, as it runs between organisations."""

    def __init__(
        self, path: Path, say: Callable[[str], None], passphrase: bytes | None = None
    ) -> None:
        self.home = PartyHome(path, passphrase)
        self.me = self.home.me
        self._terminal = say
        self.book = JobBook(self.home.store / "jobs", self.home.keys, self._say)
        self._runs: dict[str, Run] = {}
        self._news = threading.Event()
        self.council = Council(
            self.home, self.book, self._runs.__contains__, self._begin, self._say, self._news.set
        )
        self.links = StandingLinks(
            self.me, self.home.federation, self.home.keys, self._on_control, self._on_presence
        )
        self.council.links = self.links
        self._meter = LinkMeter(self.council.tell)
        self._predictions: Predictions | None = None
        self._control = ControlServer(self.home.store, self.answer)
        self._endpoint: Endpoint | None = None
        self._stopped = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="beat", daemon=True)

    def start(self) -> None:
        self.home.log.record("started")
        self._sweep()
        self.links.start()
        self._control.start()
        self._heart.start()
        self.council.take_up()
        if self.home.file.http is not None:
            self._endpoint = Endpoint(self.home.file.http, self.home.folder, self.predict)
            self._endpoint.start()
            self._say(f"predictions are served at http port {self._endpoint.port}")
        threading.Thread(target=_load_libraries, name="libraries", daemon=True).start()

    def stop(self) -> None:
        """End all runs in good order; jobs go on when the service is started again."""
        self._stopped.set()
        self._news.set()
        self._control.stop()
        if self._endpoint is not None:
            self._endpoint.stop()
        runs = list(self._runs.values())
        for run in runs:
            run.end("its service was stopped")
        if self._predictions is not None:
            self._predictions.close()
        for run in runs:
            run.join(10.0)
        self._heart.join(5.0)
        self.links.stop()
        self.home.log.record("stopped")
        self.home.close()

    def _say(self, words: str) -> None:
        """Tell the owner; words of others may be among these, and none may steer a terminal."""
        self._terminal(printable(words))

    # What the owner asks for, over the control socket.

    def answer(self, request: dict[str, Any]) -> Any:
        """The answer to one command of the owner."""
        command = request.pop("command", None)
        handler = getattr(self, f"_do_{command}", None)
        if handler is None:
            raise InputError(f"the service knows no command {command!r}")
        try:
            inspect.signature(handler).bind(**request)
        except TypeError as error:
            raise InputError(f"command {command!r}: {error}") from None
        answer = handler(**request)
        self._news.set()
        return answer

    def _do_submit(self, name: str, job: dict[str, Any]) -> Any:
        return summary(self, self.council.submit(name, _job(job)))

    def _do_list(self) -> Any:
        return [summary(self, record) for record in self.book.all()]

    def _do_show(self, number: int) -> Any:
        record = self.book.numbered(number)
        return {**summary(self, record), "text": describe(self, record)}

    def _do_approve(self, number: int) -> Any:
        return summary(self, self.council.approve(number))

    def _do_reject(self, number: int, words: str = "") -> Any:
        return summary(self, self.council.reject(number, words))

    def _do_cancel(self, number: int, words: str = "") -> Any:
        record = self.council.cancel(number, words)
        run = self._runs.get(record.digest)
        if run is not None:
            run.end(f"{self.me} cancelled the job")
        return summary(self, record)

    def _do_peers(self) -> Any:
        return peers(self)

    def _do_plan(self, job: dict[str, Any]) -> Any:
        from vertikal.node.runs.plan import Link, plan

        content = _job(job)
        seen = self.council.look(content)
        links = {}
        for name in content.names:
            if name != self.me and self.links.is_up(name):
                measured = self._meter.measure(name)
                if measured is not None:
                    links[name] = Link(*measured)
        return msgspec.to_builtins(plan(content, seen.rows, links))

    def _do_predict(
        self, name: str, ids: list[str], degraded: bool | None = None, version: int | None = None
    ) -> Any:
        return self.predict(name, tuple(ids), degraded, version)

    def predict(
        self, name: str, ids: tuple[str, ...], degraded: bool | None, version: int | None
    ) -> list[dict[str, Any]]:
        """Scores of these ids by a model that this party leads, one record per id."""
        record = self._record_of(name, version)
        if not record.leads(self.me):
            raise InputError(
                f"model {name!r}: predictions are asked for by {record.proposal.job.leader}, which "
                "holds the labels"
            )
        if not record.done:
            raise InputError(
                f"model {name!r}: job {record.number} is not done at all parties yet "
                f"({record.state(self.me)})"
            )
        if degraded is None:
            degraded = self.home.policy.unknown_ids == "degraded"
        self._check_there(record)
        began = time.monotonic()
        scores = self.predictions.ask(record, ids, degraded)
        self.home.log.record("predictions", model=name, digest=record.digest, rows=len(ids))
        self._say(f"model {name}: {len(ids)} scores in {time.monotonic() - began:.3f} s")
        job = record.proposal.job
        algorithm = algorithm_named(job.algorithm)
        return scores.rows(algorithm.predicts_log_odds(job.algorithm_settings()))

    @cached_property
    def models(self) -> JobModels:
        """This party's stored shards; made when first needed, as `predictions` is."""
        from vertikal.node.models.job_models import JobModels

        return JobModels(self.home)

    @property
    def predictions(self) -> Predictions:
        """Made when first needed: it brings the libraries of the programs."""
        from vertikal.node.predictions.sessions import Predictions

        with self.book.lock:
            if self._predictions is None:
                self._predictions = Predictions(self.home, self.links, self._open_session)
            return self._predictions

    def _record_of(self, name: str, version: int | None) -> Record:
        """The job of this version; of the newest that is done if none is named.

        A shard is stored before all parties are done: its job may be under way, or stopped.
        """
        manifest = self.models.show(name, version)
        record = self.book.find(str(manifest.facts.get("job")))
        if version is None and (record is None or not record.done):
            stored = [one for one in self.models.versions() if one.name == name]
            jobs = [self.book.find(str(one.facts.get("job"))) for one in stored]
            record = next((job for job in reversed(jobs) if job and job.done), record)
        if record is None:
            raise InputError(f"model {name!r} was not trained by a job that this party knows")
        return record

    def _check_there(self, record: Record) -> None:
        missing = self.council.missing(record)
        if missing:
            raise PeerStopped(f"predictions need every party: {'; '.join(missing)}")

    def _open_session(self, record: Record, session: str) -> None:
        for name in record.proposal.job.names:
            if name != self.me:
                self.council.tell(name, Serve(record.digest, session))

    def _on_serve(self, sender: str, message: Serve) -> None:
        """A leader opens a session: served if the job is done here and still allowed."""
        record = self.book.find(message.digest)
        if record is None or not record.leads(sender) or not record.done:
            self.home.note_refusal(sender, f"predictions with job {message.digest[:12]}")
            return
        self.predictions.serve(record, message.session)

    def run_of(self, record: Record) -> Run | None:
        """The run of a job that is under way here."""
        return self._runs.get(record.digest)

    # Runs.

    def _begin(self, record: Record) -> None:
        self.home.note("run begins", record.facts, f"attempt {record.attempt}")
        self._say(f"job {record.number}: run {record.attempt} begins")
        run = Run(self.home, self.links, record, self._ended)
        self._runs[record.digest] = run
        try:
            run.start()
        except BaseException:
            # What does not run is not running, or it would never be begun again.
            self._runs.pop(record.digest, None)
            raise

    def _ended(self, run: Run, error: BaseException | None) -> None:
        record = run.record
        try:
            self._settle(record, error)
        except VertikalError as failure:
            self._mind_room(failure)
            self._say(f"job {record.number}: {failure}")
        finally:
            self._runs.pop(record.digest, None)
            self._sweep()
            self._news.set()

    def _sweep(self) -> None:
        """Forget what was kept of jobs that have ended, one way or another."""
        with self.book.lock:
            going_on = {record.digest for record in self.book.all() if record.open}
            for kept in all_checkpoints(self.home):
                if not any(one.startswith(kept.folder.name) for one in (*going_on, *self._runs)):
                    kept.clear()

    def _settle(self, record: Record, error: BaseException | None) -> None:
        seconds = time.time() - record.changed
        if error is None:
            with self.book.changing(record):
                record.done, record.words = True, ""
            self.home.note("done", record.facts)
            self._say(f"job {record.number}: done, {seconds:.1f} s after its run began")
            return
        words = " ".join(str(error).split()) or type(error).__name__
        if not isinstance(error, VertikalError):
            words = f"{type(error).__name__}: {words}"
        self._say(f"job {record.number}: run {record.attempt} broken off: {words}")
        self._mind_room(error)
        if not record.done:
            record.words = words
        self.home.note("run broken off", record.facts, words)
        passing = is_passing(error) and record.proposal.job.on_loss == "wait"
        if passing or self._stopped.is_set():
            self.book.save(record)
        else:
            self.council.stop(record, peer_message(self.me, error), words)

    def _mind_room(self, error: BaseException) -> None:
        """After a write that found the disk full no run begins until there is room."""
        if isinstance(error, DiskFull):
            self.home.room.full = True

    # What comes over the links.

    def _on_control(self, sender: str, packed: bytes) -> None:
        try:
            try:
                message = unpack(sender, self.me, packed, self.home.keys)
            except (WireError, IdentityError) as error:
                self.home.note_refusal(sender, str(error))
                return
            self._take_in(sender, message)
        except Exception as error:
            # A full disk, most likely: the sender's next beats bring what was missed. Whatever it
            # is, no message may end the link that it came over.
            self._mind_room(error)
            kind = "" if isinstance(error, VertikalError) else f"{type(error).__name__}: "
            self._say(f"a message of {sender} was not taken in: {kind}{error}")

    def _take_in(self, sender: str, message: Message) -> None:
        if isinstance(message, Serve):
            self._on_serve(sender, message)
        elif isinstance(message, Probe):
            self._meter.heard(sender, message)
        else:
            self.council.heard(sender, message)
            self._end_the_ended()

    def _end_the_ended(self) -> None:
        """Break off the runs of jobs that somebody ended."""
        for run in list(self._runs.values()):
            if run.record.final is not None:
                run.end(f"the job was ended: {run.record.state(self.me)}")

    def _on_presence(self, name: str, up: bool) -> None:
        self._say(f"{name} is {'connected' if up else 'not connected any more'}")
        self._news.set()

    def _beat(self) -> None:
        while not self._stopped.is_set():
            self._news.wait(BEAT)
            self._news.clear()
            if not self._stopped.is_set():
                try:
                    self.council.beat()
                    if self._predictions is not None:
                        self._predictions.tidy()
                except Exception as error:
                    # Without beats a party is lost to the others: whatever it is, go on.
                    self._mind_room(error)
                    self._say(f"a beat failed: {type(error).__name__}: {error}")
                self._stopped.wait(NAP)


def _load_libraries() -> None:
    """What runs and predictions need, loaded while nobody waits for it."""
    from vertikal.node.predictions import sessions
    from vertikal.node.runs import party_run

    del sessions, party_run


def _job(content: dict[str, Any]) -> Job:
    """A job as a command brought it."""
    try:
        return convert(content, Job)
    except msgspec.ValidationError as error:
        raise InputError(f"job: {error}") from None
