"""Processes that this one starts, listens to, and ends in good order.

Each writes reports as lines of JSON to its standard output; its standard input stays open as long
as this process lives, so that it notices when this one is gone.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO

import msgspec

from vertikal.errors import DeadlineExceeded, MeshError, PeerStopped
from vertikal.mesh.party_threads import is_fatal
from vertikal.node.runs.progress import Progress, Tell
from vertikal.records import from_json

GRACE = 8.0
"""Seconds that processes have to end after one has failed, or after an interruption."""


class Child:
    """One process that was started here, and what it has said."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        self.said: dict[str, str] = {}
        """Errors that it has told of, by party."""
        self.last = ""
        """The last line on its standard error."""
        self.asked = False
        """This process has asked it to end; how it ended says nothing then."""
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            # Ctrl-C reaches this process only, which then ends the others in good order.
            start_new_session=True,
        )
        self._readers: list[threading.Thread] = []

    def listen(self, tell: Tell) -> None:
        """Read what the process says, in threads, until it ends."""
        streams = self._process.stdout, self._process.stderr
        works = self._read_reports, self._read_errors
        for stream, work in zip(streams, works, strict=True):
            thread = threading.Thread(target=work, args=(stream, tell), daemon=True)
            thread.start()
            self._readers.append(thread)

    def write(self, line: str) -> None:
        """Tell the process something; one that is gone already does not hear it."""
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.write(f"{line}\n")
                self._process.stdin.flush()

    @property
    def code(self) -> int | None:
        """Exit code of the process; None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        if self.code is None:
            self.asked = True
            self._process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float) -> None:
        """Wait until the process has ended; after so many seconds it is killed."""
        try:
            self._process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        for reader in self._readers:
            reader.join(GRACE)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream:
                with suppress(OSError):
                    stream.close()

    def _read_reports(self, stream: IO[str], tell: Tell) -> None:
        for line in stream:
            try:
                progress = from_json(line, Progress)
            except msgspec.DecodeError:
                continue
            if progress.ended not in ("", "done"):
                self.said.setdefault(progress.party, progress.ended)
            tell(progress)

    def _read_errors(self, stream: IO[str], tell: Tell) -> None:
        for line in stream:
            if line.strip():
                self.last = line.strip().removeprefix("error: ")


def supervise(
    commands: Mapping[str, list[str]], tell: Tell, dispensable: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Run these commands until all have ended; when one fails, or at Ctrl-C, the others end too.

    The failure of one of the ``dispensable`` does not end the others while one of them is left;
    those that failed are returned. A report that names a port is passed on to all others as a line
    on their standard input.
    """
    children: dict[str, Child] = {}

    def hear(progress: Progress) -> None:
        if progress.port is not None:
            for name, child in children.items():
                if name != progress.party:
                    child.write(f"{progress.port} {progress.party}")
        tell(progress)

    try:
        with _uninterrupted():
            for name, command in commands.items():
                children[name] = Child(name, command)
        for child in children.values():
            child.listen(hear)
        _await(children, dispensable)
    except BaseException:
        _end(children)
        raise
    finally:
        for child in children.values():
            child.close()
    failed = [child for child in children.values() if child.code]
    if is_fatal([child.name for child in failed], dispensable):
        raise MeshError(_words(failed))
    return tuple(child.name for child in failed)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put off a stop by the user to the end, so that no process is started and forgotten."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(signal.SIGINT, None)


def _words(failed: list[Child]) -> str:
    """Say which party failed and why: the one that began it rather than those that it stopped."""
    for child in failed:
        code = child.code or 0
        if code < 0 and not child.asked:
            return f"{child.name}: its process was ended by signal {signal.Signals(-code).name}"
    said = [item for child in failed for item in child.said.items()]
    causes = [(name, words) for name, words in said if " stopped (" not in words]
    mute = [
        (child.name, child.last or f"ended with code {child.code}")
        for child in failed
        if not (child.said or child.asked)
    ]
    for name, words in (*causes, *mute, *said):
        return words if words.startswith(f"{name}:") else f"{name}: {words}"
    return f"{failed[0].name}: ended with code {failed[0].code}"


def _await(children: Mapping[str, Child], dispensable: tuple[str, ...]) -> None:
    until: float | None = None
    while any(child.code is None for child in children.values()):
        failed = [child for child in children.values() if child.code]
        if until is None and is_fatal([child.name for child in failed], dispensable):
            # The others hear of it through the mesh; who does not end by itself is ended.
            until = time.monotonic() + GRACE
        if until is not None and time.monotonic() > until:
            _end(children)
        time.sleep(0.05)


def _end(children: Mapping[str, Child]) -> None:
    for child in children.values():
        child.terminate()
    until = time.monotonic() + GRACE
    for child in children.values():
        child.wait(until - time.monotonic())


def told_port(me: str, party: str, timeout: float) -> int:
    """In a child: wait until the process that started this one says where ``party`` listens.

    To be called before `end_with_parent`, which reads the same input.
    """
    ready, _, _ = select.select([sys.stdin], [], [], timeout)
    if not ready:
        raise DeadlineExceeded(f"{me}: nothing about the port of {party} within {timeout:g} s")
    port, _, name = sys.stdin.readline().rstrip("\n").partition(" ")
    if name != party or not port.isdigit():
        # Also what the end of the input looks like: nobody is there any more.
        raise PeerStopped(f"{me}: {party} ended before it said where it listens")
    return int(port)


def end_with_parent() -> None:
    """In a child: stop as if interrupted when the process that started this one is gone."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=watch, daemon=True).start()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
