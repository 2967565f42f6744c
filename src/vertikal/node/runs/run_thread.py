"""A run of a job at a service, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from vertikal.errors import (
    AgreementError,
    DiskFull,
    IdentityError,
    MeshError,
    PeerStopped,
    WireError,
    WorkerLost,
)
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.links.protocols import protocol_name
from vertikal.node.links.run_mesh import RunMesh
from vertikal.node.links.standing_links import StandingLinks
from vertikal.node.runs.memory import release_memory
from vertikal.node.runs.progress import Progress, ProgressReporter
from vertikal.node.runs.run_history import RunHistory
from vertikal.node.storage.party_home import PartyHome

PATIENCE = 30.0
"""Seconds after which a broken link ends a run; shorter if the job's timeout is."""


class RunThread:
    """One attempt at one job; ``ended`` is called when it is over, with its error if it failed."""

    def __init__(
        self,
        home: PartyHome,
        links: StandingLinks,
        record: JobRecord,
        ended: Callable[[RunThread, BaseException | None], None],
    ) -> None:
        self.record = record
        self.attempt = record.attempt
        self.began = time.monotonic()
        self.progress = Progress(home.me)
        self.history = RunHistory()
        self._home = home
        self._links = links
        self._ended = ended
        self._mesh: RunMesh | None = None
        self._words = ""
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=f"job {record.id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def end(self, words: str) -> None:
        """Break the run off; the others are told why."""
        with self._lock:
            self._words = words
            mesh = self._mesh
        if mesh is not None:
            mesh.abandon(words)

    def _work(self) -> None:
        error: BaseException | None = None
        try:
            self._take_part()
        except BaseException as caught:
            error = caught
        with self._lock:
            self._mesh = None
        release_memory()
        self._ended(self, error)

    def _take_part(self) -> None:
        # Imported here: a service is ready before the libraries of the algorithms are.
        from vertikal.node.runs.party_run import PartyRun, run_party
        from vertikal.node.runs.workplaces import ServiceWorkplace

        home, record = self._home, self.record
        job = record.proposal.job
        mesh = RunMesh(
            self._links,
            job.names,
            home.federation.credentials(home.identity),
            name=f"{record.digest}/{record.attempt}",
            deadline=job.timeout,
            patience=min(PATIENCE, job.timeout),
            protocol=record.protocol,
        )
        with self._lock:
            self._mesh = mesh
            words = self._words
        if words:
            mesh.abandon(words)
        run_party(
            PartyRun(
                ServiceWorkplace(home, record),
                mesh,
                _Watched(mesh, self),
                version=protocol_name(record.protocol),
            )
        )

    def check(self) -> None:
        """Raise PeerStopped if the run was broken off; local work asks this at every step."""
        if self._words:
            raise PeerStopped(f"{self._home.me}: {self._words}")


class _Watched(ProgressReporter):
    """A reporter by which a run also notices in the middle of its own work that it was ended."""

    def __init__(self, mesh: RunMesh, run: RunThread) -> None:
        self._run_of = run
        super().__init__(mesh, self._keep)

    def _keep(self, progress: Progress) -> None:
        self._run_of.progress = progress

    def begin(self, party: str, stage: str, total: int | None) -> None:
        self._run_of.check()
        self._run_of.history.begin(stage, self._run_of.progress.bytes_out)
        super().begin(party, stage, total)

    def advance(self, party: str, stage: str, amount: int, note: str) -> None:
        self._run_of.check()
        if note:
            self._run_of.history.note(note)
        super().advance(party, stage, amount, note)


def is_passing(error: BaseException) -> bool:
    """Tell if the same job may well succeed when it is taken up again."""
    if isinstance(error, DiskFull | WorkerLost):
        return True
    lasting = (AgreementError, IdentityError, WireError)
    return isinstance(error, MeshError) and not isinstance(error, lasting)
