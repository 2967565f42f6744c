"""The page docs/tutorial-between-organisations.md, executed: one folder and terminal per party.

``python`` blocks run in the common folder; ``toml`` blocks are written to the file in their title;
``console`` blocks run in the folder of the party in their title. A command that ends in ``&`` stays
and is waited for until it is ready. What a page shows as an answer, if every walk prints it, must
be answered.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.conformance.networks import free_port
from tests.service_processes import COMMAND
from tests.waiting import SECONDS, until
from vertikal.node.control import ask

PAGE = Path(__file__).parents[2] / "docs" / "tutorial-between-organisations.md"
FENCE = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.M | re.S
)
PORT = "17711"
ID = "credit-7f3a"
CERTAIN = re.compile(rf"^(?:job {ID}: (?:waits for|done)|{ID}  lender)")
"""Lines of the page that every walk prints."""


def blocks():
    return list(FENCE.finditer(PAGE.read_text(encoding="utf-8")))


class Terminals:
    """The parties' terminals; services end with the test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.services: list[subprocess.Popen[bytes]] = []

    def type(self, party: str, text: str) -> None:
        """Run the commands of one block, and compare what the page shows as their answers."""
        for part in text.split("\n$ "):
            line, *shown = part.removeprefix("$ ").strip().splitlines()
            if line.endswith("&"):
                self.stay(party, line.rstrip("& "))
                continue
            answer = self.run(party, line)
            for expected in shown:
                if CERTAIN.match(expected):
                    assert expected.replace(ID, self.job(party)) in answer, (
                        f"{party}$ {line}\n{answer}"
                    )

    def run(self, party: str, line: str) -> str:
        program, *arguments = shlex.split(line)
        assert program == "vertikal"
        if arguments[0] == "job" and arguments[1] not in ("plan", "submit"):
            self._until_asked(party)
            arguments = [self.job(party) if one == ID else one for one in arguments]
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.root / party,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{party}$ {line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def job(self, party: str) -> str:
        """Id of the page's job: its digest is another one in each walk."""
        return str(ask(self.root / party / "store", "list")[0]["job"])

    def _until_asked(self, party: str) -> None:
        """A reader types more slowly than a job travels."""
        until(lambda: ask(self.root / party / "store", "list"), f"{party} hears of the job")

    def stay(self, party: str, line: str) -> None:
        log = self.root / party / "service.log"
        with log.open("wb") as file:
            self.services.append(
                subprocess.Popen(
                    [*COMMAND, *shlex.split(line)[1:]],
                    cwd=self.root / party,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                )
            )
        until(lambda: "is ready" in log.read_text(), f"{party} is ready", log.read_text)

    def connected(self) -> None:
        """All services have heard one another."""
        store = self.root / "lender" / "store"
        until(lambda: not any(one["faults"] for one in ask(store, "peers")), "all are connected")

    def close(self) -> None:
        for service in self.services:
            service.terminate()
        for service in self.services:
            try:
                service.wait(20)
            except subprocess.TimeoutExpired:
                service.kill()
                service.wait()


@pytest.fixture
def terminals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world = Terminals(tmp_path)
    yield world
    world.close()


def test_the_walk_of_the_page(terminals):
    namespace: dict[str, object] = {"__name__": "__main__"}
    port = str(free_port())
    for block in blocks():
        language, title, text = block["language"], block["title"], block["text"]
        text = text.replace(PORT, port)
        if language == "python":
            exec(compile(text, str(PAGE), "exec"), namespace)
        elif language == "toml":
            (terminals.root / title).write_text(text, encoding="utf-8")
        elif language == "console":
            if "federation check" in text:
                terminals.connected()
            terminals.type(title, text)
        else:
            pytest.fail(f"nobody runs a block of {language!r}")
    shown = terminals.run("lender", "vertikal model show credit")
    assert re.match(
        r"result +AUC 0\.\d+ \(0\.\d+ to \d\.\d+\) together, 0\.\d+ with the col", shown
    )
    assert "Line chart: ROC." in (terminals.root / "lender" / "credit.html").read_text()
    assert "What left this party" in (terminals.root / "bank" / "credit.html").read_text()
    scores = pyarrow.parquet.read_table(terminals.root / "lender" / "scores.parquet").to_pylist()
    assert [one["id"] for one in scores] == ["1001", "1002", "1003", "nobody"]
    assert scores[-1]["status"] == "unknown"
    flagged = (terminals.root / "lender" / "degraded.csv").read_text()
    assert "nobody,degraded" in flagged


def test_every_block_is_in_a_terminal_or_a_file():
    found = blocks()
    assert {block["language"] for block in found} == {"python", "toml", "console"}
    for block in found:
        assert bool(block["title"]) is (block["language"] != "python"), block["text"]
    assert PAGE.read_text(encoding="utf-8").count("```") == 2 * len(found)
