"""``vertikal demo``: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from vertikal.cli import main
from vertikal.version import __version__

OPTIONS = ["demo", "--rows", "1500", "--seed", "0"]
# A job in the background of a shell, as a test may be, starts with the user's stop switched off.
STOPPABLE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
{before}
from vertikal.__main__ import run
run()
"""
# The user stops the program at the moment when it begins to load a certain module.
STOP_AT = """
import os, sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Stop())
"""
LOADING = {"src", "href", "srcset", "data", "poster", "action", "xlink:href"}


class Elements(HTMLParser):
    """Open elements, what they load, and the text of the results."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.open: list[str] = []
        self.results = ""
        self._inside = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in {"meta", "link", "br", "img", "input", "hr"}:
            self.open.append(tag)
        self.loaded += [v or "" for k, v in attributes if k in LOADING]
        self._inside = tag == "script" and ("id", "results") in attributes

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [v or "" for k, v in attributes if k in LOADING]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self._inside = False

    def handle_data(self, data: str) -> None:
        self.results += data if self._inside else ""


def parsed(report: Path) -> Elements:
    elements = Elements()
    elements.feed(report.read_text(encoding="utf-8"))
    elements.close()
    return elements


def without_times(results: dict[str, Any]) -> dict[str, Any]:
    for comparison in results["data"].values():
        for model in comparison["models"].values():
            del model["seconds"]
    return results


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "new" / "out"


@pytest.fixture(scope="module")
def run(folder: Path) -> Result:
    return CliRunner().invoke(main, [*OPTIONS, "--out", str(folder)], catch_exceptions=False)


@pytest.fixture(scope="module")
def results(run: Result, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(parsed(folder / "report.html").results)
    return found


def test_ends_well(run: Result) -> None:
    assert run.exit_code == 0
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("data", ["cancer", "credit"])
def test_federated_is_as_good_as_pooled_and_better_than_alone(
    results: dict[str, Any], data: str
) -> None:
    models = results["data"][data]["models"]
    auc = {key: model["auc"] for key, model in models.items()}
    assert auc["federated"] > auc["pooled"] - 0.02
    assert auc["federated"] > auc["alone"] + 0.01
    assert models["federated"]["mesh_bytes"] > 0
    assert models["pooled"]["mesh_bytes"] is None


def test_the_kernel_beats_the_line_where_parties_interact(results: dict[str, Any]) -> None:
    models = results["data"]["credit"]["models"]
    assert models["federated"]["auc"] > models["linear"]["auc"]


def test_a_line_does_well_where_the_story_says_so(results: dict[str, Any]) -> None:
    assert results["data"]["cancer"]["models"]["linear"]["auc"] > 0.98


def test_the_solver_converged(results: dict[str, Any]) -> None:
    for comparison in results["data"].values():
        # The last fit begins at that of the chosen penalty, so that it is nearly there already.
        assert comparison["objective"][-1] <= comparison["objective"][0]
        assert comparison["gradient"][-1] <= comparison["gradient"][0]


def test_more_directions_send_more(results: dict[str, Any]) -> None:
    sent = results["directions"]["mesh_bytes"]
    assert sent == sorted(sent)
    auc = results["directions"]["federated_auc"]
    assert auc[-1] > auc[0]


def test_prints_what_was_measured(run: Result, results: dict[str, Any]) -> None:
    for comparison in results["data"].values():
        for model in comparison["models"].values():
            line = next(
                line
                for line in run.stdout.splitlines()
                if model["name"] in line and f"{model['accuracy']:.3f}" in line
            )
            assert f"{model['auc']:.3f}" in line


def test_prints_the_ledger_and_the_warning(run: Result) -> None:
    words = " ".join(run.stdout.replace("│", " ").split())
    assert "all that left a party in training" in words
    assert "what the receiver learns" in words
    assert "recover other parties' columns by statistical means" in words


def test_shows_each_party_on_standard_error(run: Result) -> None:
    for party in ("clinic", "imaging", "laboratory", "lender", "bank", "shop"):
        assert re.search(rf"^│ {party} +│ done +│ .* [kM]B │", run.stderr, re.MULTILINE)


def test_the_settings_say_that_parties_were_processes(folder: Path, run: Result) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "Each party of this demonstration was a process of its own" in text
    assert "processes, mutual TLS" in text


def test_without_grpc_both_remedies_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    monkeypatch.delitem(sys.modules, "vertikal.mesh.network", raising=False)
    monkeypatch.delitem(sys.modules, "vertikal.mesh.network_links", raising=False)
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert re.fullmatch(
        r"error: .*pip install 'vertikal\[node\]'; or .* --mesh local\n", result.stderr
    )


def test_says_where_the_report_is(run: Result, folder: Path) -> None:
    assert f"Report: {folder / 'report.html'}" in run.stdout
    assert (folder / "report.html").resolve().as_uri() in run.stdout
    assert [path.name for path in folder.iterdir()] == ["report.html"]


def test_the_report_is_whole_and_loads_nothing(run: Result, folder: Path) -> None:
    elements = parsed(folder / "report.html")
    assert elements.open == []
    assert elements.tags.count("svg") == 2 * 5 + 2
    assert elements.tags.count("title") > 100  # the page's own, and one per tooltip
    assert not {"img", "link", "iframe", "object", "embed"} & set(elements.tags)
    assert [link for link in elements.loaded if not link.startswith("#")] == []
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "url(" not in text
    assert "@import" not in text


@pytest.mark.slow
def test_again_in_threads_and_without_colour(
    run: Result, results: dict[str, Any], folder: Path
) -> None:
    """Ring sums are exact: the mesh makes no difference, except to the seconds."""
    before = (folder / "report.html").stat().st_ino
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "vertikal",
            *OPTIONS,
            "--mesh",
            "local",
            "--out",
            "out",
            "--no-open-hint",
        ],
        cwd=folder.parent,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert f"Report: {Path('out') / 'report.html'}" in done.stdout
    assert "file://" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) >= 100
    assert (folder / "report.html").stat().st_ino != before
    again = json.loads(parsed(folder / "report.html").results)
    assert without_times(again) == without_times(results)


@pytest.mark.parametrize(
    "options",
    [["--rows", "5"], ["--rows", "many"], ["--seed", "-1"], ["--wrong"], ["extra"]],
    ids=" ".join,
)
def test_bad_options_are_usage_errors(options: list[str]) -> None:
    result = CliRunner().invoke(main, ["demo", *options])
    assert result.exit_code == 2
    assert "Usage: " in result.stderr


def test_an_unwritable_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        result = CliRunner().invoke(main, ["demo", "--out", str(out)])
        assert result.exit_code == 1
        assert result.stdout == ""
        assert re.fullmatch(r"error: --out must be a folder .*\n", result.stderr)


def test_a_folder_in_place_of_the_report_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert re.fullmatch(r"error: --out must be .*report\.html.*\n", result.stderr)


def stoppable(before: str, out: Path, temporary: Path) -> subprocess.Popen[str]:
    """The demonstration as a process whose user can stop it; ``before`` is run first."""
    temporary.mkdir()
    return subprocess.Popen(
        [sys.executable, "-c", STOPPABLE.format(before=before), "demo", "--out", str(out)],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


@pytest.mark.parametrize(
    "module", ["vertikal.cli.group", "rich", "numpy", "sklearn", "vertikal.demo.show"]
)
def test_the_users_stop_while_modules_load_is_quiet(tmp_path: Path, module: str) -> None:
    process = stoppable(STOP_AT.format(module=module), tmp_path / "out", tmp_path / "temporary")
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (130, "", "")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_users_stop_ends_every_party(tmp_path: Path) -> None:
    process = stoppable("", tmp_path / "out", tmp_path / "temporary")
    try:
        until = time.monotonic() + 60
        while len(parties := children_of(process.pid)) < 3:
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "Aborted" not in errors
    assert [pid for pid in parties if Path(f"/proc/{pid}").exists()] == []
    assert not (tmp_path / "out" / "report.html").exists()
    assert list((tmp_path / "temporary").iterdir()) == []


def children_of(pid: int) -> list[int]:
    """The processes of parties that this one has started."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if "run-party" in line]


def test_version() -> None:
    result = CliRunner().invoke(main, ["--version"])
    assert (result.exit_code, result.stdout.split()[-1]) == (0, __version__)
