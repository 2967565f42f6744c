"""The aggregation server as a process: killed in the midst of a round, and led by the tutorial."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest

from tests.aggregation.hall import Hall, plain_kernel, together
from tests.service_processes import COMMAND
from tests.waiting import SECONDS
from vertikal.secure.secagg.rounds import MASK, STAGES, UNMASK

DOCS = Path(__file__).parents[2] / "docs"
NAMES = [f"c{i}" for i in range(10)]
READY = re.compile(r"is ready at port (\d+)")
FENCE = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.M | re.S
)
PORT = "7400"


class Processes:
    """Servers that end with the test."""

    def __init__(self) -> None:
        self.running: list[subprocess.Popen[str]] = []

    def serve(self, file: Path) -> tuple[int, int]:
        """Start a server, and return its process number and its port."""
        command = [*COMMAND, "aggregate", "serve", file.name]
        process = subprocess.Popen(
            command, cwd=file.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.running.append(process)
        said = ""
        for line in process.stdout:
            said += line
            if found := READY.search(line):
                return process.pid, int(found[1])
        raise AssertionError(f"the server ended: {said}")

    def end(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()
            process.stdout.close()


@pytest.fixture
def processes() -> Iterator[Processes]:
    made = Processes()
    yield made
    made.end()


@pytest.mark.parametrize(
    "stage",
    [one if one == UNMASK else pytest.param(one, marks=pytest.mark.slow) for one in STAGES],
)
def test_a_server_that_is_killed_gives_the_round_up_and_runs_the_next(tmp_path, processes, stage):
    """A client kills it before it answers the stage, so that nothing depends on a clock."""
    hall = Hall.build(tmp_path)
    file = hall.write()
    number, port = processes.serve(file)

    def deadly(at: str, frame: bytes) -> list[bytes]:
        if at == stage:
            os.kill(number, signal.SIGKILL)
            processes.running[0].wait()
        return [frame]

    ended = asyncio.run(together(hall, port, NAMES, {"c3": deadly}))
    assert all(isinstance(one, Exception) for one in ended.values())
    (begun,) = (tmp_path / "store" / "rounds").glob("*.json")
    announced = STAGES.index(stage) > STAGES.index(MASK)
    assert json.loads(begun.read_text())["state"] == ("announced" if announced else "begun")
    # Shares and vectors of the round are not found again.
    left = {file.relative_to(tmp_path / "store").parts[0] for file in tmp_path.glob("store/**/*")}
    assert left <= {"rounds", "kernel", "opened", "lock", "status.json"}
    assert not list((tmp_path / "store" / "kernel").glob("*.npy"))

    _, port = processes.serve(file)
    assert set(asyncio.run(together(hall, port, NAMES)).values()) == {10}
    first, second = sorted((tmp_path / "store" / "rounds").glob("*.json"))
    told = json.loads(first.read_text())
    assert told["state"] == "abandoned"
    assert ("may have been opened" in told["reason"]) is announced
    assert json.loads(second.read_text())["state"] == "finished"
    assert json.loads(second.read_text())["reference"] != told["reference"]
    (kernel,) = (tmp_path / "store" / "kernel").glob("*.npy")
    assert np.array_equal(np.load(kernel), plain_kernel(set(NAMES)))


def test_the_tutorial(tmp_path, monkeypatch, processes):
    """Files, commands and Python of the page, in one folder; the server chooses its port."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    port = PORT
    for block in FENCE.finditer((DOCS / "tutorial-many-clients.md").read_text(encoding="utf-8")):
        language, title, text = block["language"], block["title"], block["text"]
        if title is not None:
            Path(title).write_text(text.replace(f":{PORT}", ":0"))
        elif language == "python":
            exec(compile(text, "tutorial", "exec"), names)
        else:
            for line in text.splitlines():
                if not line.startswith("$ "):
                    continue
                command = line[2:].replace(f":{PORT}", f":{port}")
                if command.endswith("&"):
                    port = str(processes.serve(tmp_path / "server.toml")[1])
                    continue
                print(command, said := _run(command), sep="\n")
                for answer in shown_after(text, line):
                    assert answer.split() in [one.split() for one in said.splitlines()], said
    assert not any(reader.is_alive() for reader in names["readers"])
    told = json.loads(_run("vertikal aggregate status server.toml --json"))
    assert [one["state"] for one in told["rounds"]] == ["finished"]
    found = json.loads(_run("vertikal aggregate recommend devices/ana --ratings ana.txt --json"))
    assert found["items"][0]["item"] in ("vicarage", "orchard")
    refused = _run("vertikal aggregate join devices/ana", code=1)
    assert "give --ratings or --columns" in refused
    Path("films.txt").write_text("metropolis\nnosferatu\n")
    refused = _run("vertikal aggregate join devices/ana --ratings films.txt", code=1)
    assert "got none of them in 2 lines, the first 'metropolis'" in refused


def shown_after(block: str, command: str) -> list[str]:
    """The lines that a page shows as the answer to a command."""
    lines = block.partition(f"{command}\n")[2].splitlines()
    return list(takewhile(lambda line: not line.startswith("$ "), lines))


def _run(command: str, code: int = 0) -> str:
    done = subprocess.run(
        [*COMMAND, *shlex.split(command)[1:]],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == code, (command, done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr
