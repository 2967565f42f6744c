"""The console as a process beside the service: pages cost a run nothing but a question a second.

It ends with the service, whose end it notices by its standard input.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from vertikal.errors import VertikalError

GRACE = 5.0
"""Seconds that the process has to end."""
PASSPHRASE = "VERTIKAL_PASSPHRASE"
"""Variable that the console must not have: it holds no key."""


class ConsoleChild:
    """A process that serves the console of a party until it is stopped, or this one ends."""

    def __init__(self, party: Path, say: Callable[[str], None]) -> None:
        self._party = party
        self._say = say
        self._process: subprocess.Popen[str] | None = None
        self._listener: threading.Thread | None = None
        self._stopping = False

    def start(self) -> None:
        environment = {key: one for key, one in os.environ.items() if key != PASSPHRASE}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "vertikal", "console", "--beside", "--party", self._party],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise VertikalError(f"the console could not be started: {error.strerror}") from None
        self._listener = threading.Thread(target=self._listen, name="console", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        """Pass on what the console says."""
        process = self._process
        if process is None or process.stdout is None:
            return
        with process.stdout as lines:
            for line in lines:
                if line.strip():
                    self._say(f"console: {line.strip().removeprefix('error: ')}")
        process.wait()
        if not self._stopping:
            self._say("console: it has ended; the service goes on without it")

    def stop(self) -> None:
        self._stopping = True
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._listener is not None:
            self._listener.join(GRACE)
