"""The owner's command for a job that waits for a decision: `on_proposal` of the party file.

The command is run without a shell, in the folder of the party file. It reads the job as one JSON
object from standard input, and finds its id, its submitter and this party in the environment. It
decides nothing: whatever it answers, the job waits until the owner decides. Commands run one after
another, each has `SECONDS`, and jobs that find `MOST_WAITING` before them are not told.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from vertikal.node.approval.job_description import describe
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.storage.party_home import PartyHome

SECONDS = 60.0
"""Seconds that a command may take; then it is ended, with all that it has started."""
MOST_WAITING = 100
MOST_WORDS = 300
"""Characters of a failed command's output that are told."""
_SECRET = "VERTIKAL_PASSPHRASE"


class ProposalHook:
    """Runs the owner's command for each job, in a thread of its own."""

    def __init__(self, home: PartyHome, say: Callable[[str], None]) -> None:
        self._home = home
        self._say = say
        self._changed = threading.Condition()
        self._waiting: deque[JobRecord] = deque()
        self._told: set[str] = set()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def tell(self, record: JobRecord) -> None:
        """Have the command run for this job, once while the service runs; never waits."""
        if not self._home.file.on_proposal:
            return
        with self._changed:
            if self._stopped or record.digest in self._told:
                return
            if len(self._waiting) >= MOST_WAITING:
                self._say(f"job {record.id}: on_proposal is not run, {MOST_WAITING} others wait")
                return
            self._told.add(record.digest)
            self._waiting.append(record)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="on_proposal", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def stop(self) -> None:
        """Run no more commands; one that runs is left to its deadline, or to the end of us."""
        with self._changed:
            self._stopped = True
            self._waiting.clear()
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
                record = self._waiting.popleft()
            try:
                if record.open and not record.verdict(self._home.me):
                    self._tell_one(record)
            except Exception as error:
                # A job that was not told still waits, and the next one must be.
                self._home.mind_room(error)
                self._say(f"job {record.id}: on_proposal failed: {type(error).__name__}: {error}")

    def _tell_one(self, record: JobRecord) -> None:
        fault = run_command(
            self._home.file.on_proposal,
            self._home.folder,
            {
                "VERTIKAL_EVENT": "proposal",
                "VERTIKAL_NAME": self._home.me,
                "VERTIKAL_JOB": record.id,
                "VERTIKAL_SUBMITTER": record.proposal.submitter,
            },
            msgspec.json.encode(job_told(self._home, record)) + b"\n",
        )
        self._home.note("owner told", record.facts, fault)
        if fault:
            self._say(f"job {record.id}: on_proposal {fault}")


def job_told(home: PartyHome, record: JobRecord) -> dict[str, object]:
    """Make the JSON object that a command reads: the job as it stands, and its description."""
    proposal, state = record.proposal, record.state(home.me)
    return {
        "event": "proposal",
        "party": home.me,
        "job": record.id,
        "digest": record.digest,
        "name": proposal.name,
        "from": proposal.submitter,
        "algorithm": proposal.job.algorithm,
        "submitted": proposal.submitted,
        "expires": proposal.submitted + proposal.job.lifetime,
        "state": state,
        "text": describe(home, record, state),
    }


def run_command(
    command: Sequence[str], folder: Path, told: Mapping[str, str], content: bytes
) -> str:
    """Run a command with ``content`` as its input; return why it failed, or nothing.

    It sees the environment of the service without the passphrase of the key, and ``told``. What it
    prints is read to its end and told only if it fails.
    """
    environment = {name: value for name, value in os.environ.items() if name != _SECRET}
    try:
        process = subprocess.Popen(
            list(command),
            cwd=folder,
            env={**environment, **told},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        return f"cannot run {command[0]!r}: {error.strerror}"
    heard = bytearray()
    threads = [
        threading.Thread(target=_feed, args=(process, content), daemon=True),
        threading.Thread(target=_hear, args=(process, heard), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        code = process.wait(SECONDS)
        why = f"ended with code {code}" if code else ""
    except subprocess.TimeoutExpired:
        why = f"took more than {SECONDS:g} s and was ended"
    finally:
        # Also what it has started, which would hold its output open.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for thread in threads:
        thread.join(1.0)
    words = " ".join(heard.decode(errors="replace").split())[:MOST_WORDS]
    return f"{why}: {words}" if why and words else why


def _feed(process: subprocess.Popen[bytes], content: bytes) -> None:
    """Hand over the input; a command that does not read it is none the worse."""
    if process.stdin is None:
        return
    rest = memoryview(content)
    with process.stdin as pipe, suppress(OSError):
        while rest:
            rest = rest[pipe.write(rest) :]


def _hear(process: subprocess.Popen[bytes], heard: bytearray) -> None:
    """Read all output, so that the command never waits for us, and keep its beginning."""
    if process.stdout is None:
        return
    with process.stdout as pipe, suppress(OSError):
        while piece := pipe.read(1 << 16):
            heard += piece[: max(0, 4 * MOST_WORDS - len(heard))]
