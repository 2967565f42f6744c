"""Pages between organisations, executed: one folder and terminal per party.

The tutorial comes first; how-to pages go on where it ends, in the same folders.

``python`` blocks run in the common folder; ``toml`` blocks are written to the file in their title;
``console`` blocks run in the folder of the party in their title. A command that ends in ``&`` stays
and is waited for until it is ready. What a page shows as an answer, if every walk prints it, must
be answered.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
from pathlib import Path

import pyarrow.parquet
import pytest
from click.testing import CliRunner

from tests.ports import free_port
from tests.service_processes import COMMAND
from tests.waiting import until
from vertikal.cli import main
from vertikal.node.control import ask

DOCS = Path(__file__).parents[2] / "docs"
TUTORIAL, SCORING, RETRAINING = PAGES = [
    DOCS / "tutorial-between-organisations.md",
    DOCS / "how-to-score-new-people.md",
    DOCS / "how-to-retrain.md",
]
FENCE = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.M | re.S
)
PORT = "17711"
ID = "credit-7f3a"
CERTAIN = re.compile(
    rf"^(?:job {ID}: (?:waits for|done)|{ID}  lender|(?:accounts|new)  +\d+  ok|not submitted)"
)
"""Lines of the page that every walk prints."""


def blocks(page):
    return list(FENCE.finditer(page.read_text(encoding="utf-8")))


class Terminals:
    """The parties' terminals; services end with the test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.services: dict[str, subprocess.Popen[bytes]] = {}

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
                    told = expected.replace(ID, self.job(party)) if ID in expected else expected
                    assert told in answer, f"{party}$ {line}\n{answer}"

    def run(self, party: str, line: str) -> str:
        program, *arguments = shlex.split(line)
        assert program == "vertikal"
        if arguments[:2] == ["federation", "check"]:
            self.connected()
        if arguments[0] == "job" and arguments[1] not in ("plan", "submit"):
            self._until_asked(party)
            arguments = [self.job(party) if one == ID else one for one in arguments]
        # In this process, for the time that fifty more would take to start. Services have theirs.
        with contextlib.chdir(self.root / party):
            done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, f"{party}$ {line}\n{done.output}"
        return done.stdout

    def job(self, party: str) -> str:
        """Id of the page's job: its digest is another one in each walk."""
        return str(ask(self.root / party / "store", "list")[0]["job"])

    def _until_asked(self, party: str) -> None:
        """A reader types more slowly than a job travels."""
        until(lambda: ask(self.root / party / "store", "list"), f"{party} hears of the job")

    def stay(self, party: str, line: str) -> None:
        """Start a service; one that runs is stopped first."""
        if party in self.services:
            self.stop(party)
        log = self.root / party / "service.log"
        with log.open("wb") as file:
            self.services[party] = subprocess.Popen(
                [*COMMAND, *shlex.split(line)[1:]],
                cwd=self.root / party,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        until(lambda: "is ready" in log.read_text(), f"{party} is ready", log.read_text)

    def connected(self) -> None:
        """All services have heard one another."""
        store = self.root / "lender" / "store"
        until(lambda: not any(one["faults"] for one in ask(store, "peers")), "all are connected")

    def stop(self, party: str) -> None:
        service = self.services.pop(party)
        service.terminate()
        try:
            service.wait(20)
        except subprocess.TimeoutExpired:
            service.kill()
            service.wait()

    def close(self) -> None:
        for service in self.services.values():
            service.terminate()
        for party in list(self.services):
            self.stop(party)


@pytest.fixture
def terminals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world = Terminals(tmp_path)
    yield world
    world.close()


def walk(terminals, page, namespace, port):
    for block in blocks(page):
        language, title, text = block["language"], block["title"], block["text"]
        text = text.replace(PORT, port)
        if language == "python":
            exec(compile(text, str(page), "exec"), namespace)
        elif language == "text":
            continue
        elif language == "toml":
            (terminals.root / title).write_text(text, encoding="utf-8")
        elif language == "console":
            terminals.type(title, text)
        else:
            pytest.fail(f"nobody runs a block of {language!r}")


def test_the_walk_of_the_pages(terminals):
    namespace: dict[str, object] = {"__name__": "__main__"}
    port = str(free_port())
    for page, check in (
        (TUTORIAL, check_tutorial),
        (SCORING, check_scoring),
        (RETRAINING, check_retraining),
    ):
        walk(terminals, page, namespace, port)
        check(terminals)


def check_tutorial(terminals):
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


def check_scoring(terminals):
    lines = (terminals.root / "lender" / "new-scores.csv").read_text().splitlines()
    assert len(lines) == 76
    assert len([line for line in lines if ",ok," in line]) > 50
    assert [line for line in lines if ",unknown," in line]
    for party, told in (("lender", False), ("bank", False), ("shop", True)):
        answer = terminals.run(party, "vertikal model show credit")
        assert ("column basket_value: " in answer) is told, answer


def check_retraining(terminals):
    versions = json.loads(terminals.run("lender", "vertikal model list --json"))
    assert [one["version"] for one in versions] == [1, 2]
    worse = versions[1]["facts"].get("kept_back", "")
    assert not worse or "of version 1, which stays in use" in worse


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_in_a_terminal_or_a_file(page):
    found = blocks(page)
    assert {block["language"] for block in found} >= {"python", "console"}
    for block in found:
        titled = block["language"] not in ("python", "text")
        assert bool(block["title"]) is titled, block["text"]
    assert page.read_text(encoding="utf-8").count("```") == 2 * len(found)
