"""A run of a job in a thread of its own, and how it ends: done, to be resumed, or stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from vertikal.errors import (
    AgreementError,
    DiskFull,
    IdentityError,
    MeshError,
    PeerStopped,
    WireError,
)
from vertikal.files import disk_error, is_full, private_folder
from vertikal.node.approval.job_records import Record
from vertikal.node.links.run_mesh import RunMesh
from vertikal.node.links.standing_links import StandingLinks
from vertikal.node.peer_message import peer_message
from vertikal.node.runs.checkpoints import Checkpoints
from vertikal.node.runs.memory import release_memory
from vertikal.node.runs.progress import Progress, ProgressReporter
from vertikal.node.storage.party_home import PartyHome

CHECKPOINTS = "checkpoints"
FAREWELL = 5.0
"""Seconds that a party takes to tell the others why its run has ended."""
PATIENCE = 30.0
"""Seconds after which a broken link ends a run; shorter if the job's timeout is."""


class Run:
    """One attempt at one job."""

    def __init__(
        self,
        home: PartyHome,
        links: StandingLinks,
        record: Record,
        ended: Callable[[Run, BaseException | None], None],
    ) -> None:
        self.record = record
        self.attempt = record.attempt
        self.began = time.monotonic()
        self.progress = Progress(home.me)
        self._home = home
        self._links = links
        self._ended = ended
        self._mesh: RunMesh | None = None
        self._words = ""
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=f"job {record.number}", daemon=True)

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
        # Imported here: a service is ready before the libraries of the programs are.
        from vertikal.compute.threads import one_blas_thread
        from vertikal.node.runs.party_run import Bench, run

        home, record = self._home, self.record
        job = record.proposal.job
        mesh = RunMesh(
            self._links,
            job.names,
            home.federation.credentials(home.identity),
            name=f"{record.digest}/{record.attempt}",
            deadline=job.timeout,
            patience=min(PATIENCE, job.timeout),
        )
        with self._lock:
            self._mesh = mesh
            words = self._words
        if words:
            mesh.abandon(words)
        reporter = _Watched(mesh, self)
        try:
            checkpoints = checkpoints_of(home, record)
            bench = Bench(home, record, mesh, reporter, checkpoints)
            try:
                with one_blas_thread():
                    run(bench)
            except BaseException:
                # A full disk is met here again, and must not hide where it was met first.
                with suppress(DiskFull):
                    home.note_ledgers(f"job {record.number}", record.digest, bench.ledgers)
                raise
            home.note_ledgers(f"job {record.number}", record.digest, bench.ledgers)
        except BaseException as caught:
            error = caught
            if isinstance(caught, OSError) and is_full(caught):
                error = disk_error(Path(caught.filename or home.store), caught)
            mesh.fail(peer_message(home.me, error))
            mesh.stop(FAREWELL)
            reporter.close(" ".join(str(error).split()))
            raise error from None
        mesh.close()
        reporter.close("done")
        mesh.stop()

    def check(self) -> None:
        """PeerStopped if the run was broken off: local work asks this at every step."""
        if self._words:
            raise PeerStopped(f"{self._home.me}: {self._words}")


class _Watched(ProgressReporter):
    """A reporter by which a run also notices in the middle of its own work that it was ended."""

    def __init__(self, mesh: RunMesh, run: Run) -> None:
        self._run_of = run
        super().__init__(mesh, self._keep)

    def _keep(self, progress: Progress) -> None:
        self._run_of.progress = progress

    def begin(self, party: str, stage: str, total: int | None) -> None:
        self._run_of.check()
        super().begin(party, stage, total)

    def advance(self, party: str, stage: str, amount: int, note: str) -> None:
        self._run_of.check()
        super().advance(party, stage, amount, note)


def checkpoints_of(home: PartyHome, record: Record) -> Checkpoints:
    """What this party keeps of a job between its runs."""
    return Checkpoints(private_folder(home.store / CHECKPOINTS) / record.digest[:16])


def all_checkpoints(home: PartyHome) -> list[Checkpoints]:
    """What this party keeps of all jobs."""
    return [Checkpoints(path) for path in (home.store / CHECKPOINTS).glob("*")]


def is_passing(error: BaseException) -> bool:
    """Whether the same job may well succeed when it is taken up again."""
    if isinstance(error, DiskFull):
        return True
    lasting = (AgreementError, IdentityError, WireError)
    return isinstance(error, MeshError) and not isinstance(error, lasting)
