"""Minutes from a clone to an evaluated, tuned model between three services, as the tutorial has it.

    python -m benchmarks.scale.first_model

The repository is cloned and installed into a fresh environment; then the blocks of the tutorial
between organisations are run from it, one folder per party, up to the report of the model. The
page's job searches a penalty and is evaluated. A program types at once, so what is left out is the
reader's time; the commands and files that somebody has to type are counted instead.
"""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import Benchmark, arguments, seconds

ROOT = Path(__file__).parents[2]
PAGE = "docs/tutorial-between-organisations.md"
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.M | re.S)
LAST = "vertikal model report"
"""The walk ends with the first block that has this command."""
ID = "credit-7f3a"
MINUTES = 5.0
WAIT = 300.0


class Walk:
    """The parties' terminals, with the commands of a fresh installation."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._python, self._folder = python, folder
        self._services: list[subprocess.Popen[bytes]] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = str(probe.getsockname()[1])
        self.commands = self.files = self.blocks = 0

    def follow(self, page: str) -> None:
        """Run the blocks of a page, up to the last one that is needed."""
        earlier = ""
        for language, title, text in FENCE.findall(page.replace("17711", self._port)):
            if language == "python":
                # Each block sees what those before it made; folders that are there stay.
                self._python_block(earlier, text)
                earlier += text
            elif language == "toml":
                self.files += 1
                (self._folder / title).write_text(text)
            else:
                for line in re.findall(r"^\$ (.*)$", text, re.M):
                    self._type(title, line)
                if LAST in text:
                    return

    def _python_block(self, earlier: str, text: str) -> None:
        self.blocks += 1
        script = f"{earlier.replace('.mkdir()', '.mkdir(exist_ok=True)')}\n{text}"
        subprocess.run([self._python, "-c", script], cwd=self._folder, check=True)

    def _type(self, party: str, line: str) -> None:
        self.commands += 1
        program, *words = shlex.split(line.rstrip("& "))
        assert program == "vertikal"
        folder = self._folder / party
        if line.endswith("&"):
            with (folder / "service.log").open("wb") as log:
                command = [self._python, "-m", "vertikal", *words]
                self._services.append(
                    subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
                )
            self._until(lambda: "is ready" in (folder / "service.log").read_text())
            return
        if words[:2] == ["federation", "check"]:
            self._until(lambda: self._run(party, words).returncode == 0)
        if ID in words:
            self._until(lambda: bool(self._jobs(party)))
            words[words.index(ID)] = self._jobs(party)[0]["job"]
        done = self._run(party, words)
        if done.returncode:
            raise SystemExit(f"{party}$ {line}\n{done.stdout}{done.stderr}")

    def _jobs(self, party: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._run(party, ["job", "list", "--json"]).stdout)
        return found

    def _run(self, party: str, words: list[str]) -> subprocess.CompletedProcess[str]:
        command = [self._python, "-m", "vertikal", *words]
        folder = self._folder / party
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    def _until(self, met: Any) -> None:
        until = time.monotonic() + WAIT
        while not met():
            if time.monotonic() > until:
                raise SystemExit("the walk does not go on")
            time.sleep(0.1)

    def result(self) -> str:
        shown = self._run("lender", ["model", "show", "credit"]).stdout
        return shown.splitlines()[0].removeprefix("result").strip()

    def close(self) -> None:
        for service in self._services:
            service.terminate()
        for service in self._services:
            service.wait(60)


def install(clone: Path) -> Path:
    """Make an environment beside the clone; returns its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", ".venv"], cwd=clone, check=True)
    python = clone / ".venv" / "bin" / "python"
    words = ["-m", "pip", "install", "-qq", "-c", "constraints.txt", ".[fast,node]"]
    subprocess.run([python, *words], cwd=clone, check=True)
    return python


def main() -> None:
    options = arguments(__doc__ or "")
    bench = Benchmark("scale-first-model", {"page": PAGE})
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        words = ["git", "clone", "-q", str(ROOT), str(clone)]
        cloning = seconds(lambda: subprocess.run(words, check=True))
        began = time.perf_counter()
        python = install(clone)
        installing = time.perf_counter() - began
        tables = Path(folder) / "organisations"
        tables.mkdir()
        walk = Walk(python, tables)
        try:
            walking = seconds(lambda: walk.follow((clone / PAGE).read_text()))
            bench.figure("result", walk.result())
        finally:
            walk.close()
    bench.figure("clone, s", cloning)
    bench.figure("install, s", installing)
    bench.figure("walk to the report, s", walking)
    bench.figure("commands typed", walk.commands)
    bench.figure("files written", walk.files)
    bench.figure("blocks of Python that make tables and the federation file", walk.blocks)
    bench.target(
        "minutes from the clone to the report",
        (cloning + installing + walking) / 60,
        MINUTES,
        at_most=True,
    )
    bench.write(options.out)


if __name__ == "__main__":
    main()
