"""The runs of one party: those under way, and what becomes of a job when a run of it ends."""

from __future__ import annotations

import time
from collections.abc import Callable

from vertikal.errors import VertikalError
from vertikal.node.approval.job_records import JobBook, JobRecord
from vertikal.node.links.standing_links import StandingLinks
from vertikal.node.peer_message import peer_message
from vertikal.node.runs.checkpoint_folder import all_checkpoints
from vertikal.node.runs.run_thread import RunThread, is_passing
from vertikal.node.storage.party_home import PartyHome

STOPPING = 10.0
"""Seconds that a service which stops waits for its runs to end."""


class JobRuns:
    """Begins runs and settles their jobs: done, to be taken up again, or stopped for good."""

    def __init__(
        self,
        home: PartyHome,
        book: JobBook,
        links: StandingLinks,
        stop_job: Callable[[JobRecord, str, str], None],
        say: Callable[[str], None],
        wake: Callable[[], None],
    ) -> None:
        self._home = home
        self._book = book
        self._links = links
        self._stop_job = stop_job
        """Ends a job for all parties: its record, the reason that they read, the owner's."""
        self._say = say
        self._wake = wake
        self._runs: dict[str, RunThread] = {}
        self._stopped = False

    def is_running(self, digest: str) -> bool:
        return digest in self._runs

    def run_of(self, record: JobRecord) -> RunThread | None:
        """The run of a job that is under way here."""
        return self._runs.get(record.digest)

    def begin(self, record: JobRecord) -> None:
        """Begin the attempt that the record names, in a thread of its own."""
        self._home.note("run begins", record.facts, f"attempt {record.attempt}")
        self._say(f"job {record.id}: run {record.attempt} begins")
        run = RunThread(self._home, self._links, record, self._ended)
        self._runs[record.digest] = run
        try:
            run.start()
        except BaseException:
            # A run that could not be started must not count as running: no other would begin.
            self._runs.pop(record.digest, None)
            raise

    def end(self, record: JobRecord, reason: str) -> None:
        """Break off the run of a job, if there is one; its other parties read the reason."""
        run = self.run_of(record)
        if run is not None:
            run.end(reason)

    def end_finished(self) -> None:
        """Break off the runs of jobs that some party has ended."""
        for run in list(self._runs.values()):
            if run.record.final is not None:
                run.end(f"the job was ended: {run.record.state(self._home.me)}")

    def break_off(self) -> None:
        """Break off all runs; their jobs go on when the service is started again."""
        self._stopped = True
        for run in list(self._runs.values()):
            run.end("its service was stopped")

    def join(self) -> None:
        """Wait for the runs to end."""
        for run in list(self._runs.values()):
            run.join(STOPPING)

    def sweep(self) -> None:
        """Remove the checkpoints of jobs that have ended, one way or another."""
        with self._book.lock:
            open_jobs = {record.digest for record in self._book.all() if record.open}
            for kept in all_checkpoints(self._home.store):
                if not any(one.startswith(kept.folder.name) for one in (*open_jobs, *self._runs)):
                    kept.clear()

    def _ended(self, run: RunThread, error: BaseException | None) -> None:
        record = run.record
        try:
            self._settle(record, error)
        except VertikalError as failure:
            self._home.mind_room(failure)
            self._say(f"job {record.id}: {failure}")
        finally:
            self._runs.pop(record.digest, None)
            self.sweep()
            self._wake()

    def _settle(self, record: JobRecord, error: BaseException | None) -> None:
        seconds = time.time() - record.changed
        if error is None:
            with self._book.changing(record):
                record.done, record.note = True, ""
            self._home.note("done", record.facts)
            self._say(f"job {record.id}: done, {seconds:.1f} s after its run began")
            return
        reason = " ".join(str(error).split()) or type(error).__name__
        if not isinstance(error, VertikalError):
            reason = f"{type(error).__name__}: {reason}"
        self._say(f"job {record.id}: run {record.attempt} broken off: {reason}")
        self._home.mind_room(error)
        if not record.done:
            record.note = reason
        self._home.note("run broken off", record.facts, reason)
        passing = is_passing(error) and record.proposal.job.on_loss == "wait"
        if passing or self._stopped:
            self._book.save(record)
        else:
            self._stop_job(record, peer_message(self._home.me, error), reason)
