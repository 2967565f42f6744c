"""``vertikal run``: its live table, and how it fails before anything is started."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.cli import main
from vertikal.node.runs.live_table import LiveTable
from vertikal.node.runs.progress import Progress
from vertikal.node.runs.workplaces import models_in

JOB = """
[settings]
n_components = 8
[parties.bank]
table = "bank.csv"
label = "y"
[parties.shop]
table = "shop.csv"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [(i * 7 % 5, i * 3 % 11, i % 2) for i in range(30)]
    (tmp_path / "bank.csv").write_text("u,y\n" + "".join(f"{u},{y}\n" for u, _, y in rows))
    (tmp_path / "shop.csv").write_text("v\n" + "".join(f"{v}\n" for _, v, _ in rows))
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def drawn(live: LiveTable) -> list[list[str]]:
    """The cells of the table, line by line, without its frame."""
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(live.table())
    lines = console.export_text().splitlines()
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if "│" in line]


def test_the_table_has_one_line_per_party() -> None:
    live = LiveTable(("bank", "shop"))
    assert drawn(live) == [
        ["bank", "starting", "0", "", "0 B", "0 B", "", ""],
        ["shop", "starting", "0", "", "0 B", "0 B", "", ""],
    ]


def test_the_table_shows_the_last_report_of_each() -> None:
    live = LiveTable(("bank", "shop"))
    for done in (100, 250):
        live.tell(
            Progress("bank", "phases", done, 1000, "", 2.0, 5_000_000, 1200, "shop ('sum', 3 s)")
        )
    live.tell(Progress("shop", "solve", 7, None, "objective 0.41", 2.0))
    live.tell(Progress("zoe", "solve"))
    bank, shop = drawn(live)
    assert bank == [
        "bank",
        "phases",
        "250 / 1,000",
        "",
        "5.0 MB",
        "1.2 kB",
        "shop ('sum', 3 s)",
        "6.0 s",
    ]
    assert shop[:4] == ["shop", "solve", "7", "objective 0.41"]
    live.tell(Progress("bank", "phases", 250, 1000, ended="bank: shop stopped (out of memory)"))
    assert drawn(live)[0][1] == "bank: shop stopped (out of memory)"
    assert drawn(live)[0][-1] == ""


def test_the_table_is_drawn_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with LiveTable(("bank",)) as live:
        live.tell(Progress("bank", "solve"))
    out, errors = capsys.readouterr()
    assert out == ""
    assert "solve" in errors


def test_threads_leave_a_model_in_a_store_for_each_party(folder: Path) -> None:
    result = CliRunner().invoke(
        main,
        ["run", str(folder / "job.toml"), "--mesh", "local", "--out", str(folder / "out")],
        catch_exceptions=False,
    )
    assert result.exit_code == 0, result.stderr
    out = folder / "out"
    for name, others in (("bank", {"shop"}), ("shop", {"bank"})):
        stored = models_in(out, name).load("job", FDSKL)
        assert (stored.shard.party, stored.manifest.facts["rows"]) == (name, 30)
        assert stored.preparation.titles == stored.shard.columns
        assert {entry.receiver for entry in stored.record.ledger} == others
        assert stored.record.stages["agreement"].bytes_sent > 0
        listed = CliRunner().invoke(main, ["model", "list", "--store", str(out / name)])
        assert stored.manifest.digest[:16] in listed.stdout
    assert sorted(path.name for path in out.iterdir()) == ["bank", "shop"]


@pytest.mark.parametrize("mesh", ["local", pytest.param("network", marks=pytest.mark.slow)])
def test_the_result_of_an_evaluation_is_printed(folder: Path, mesh: str) -> None:
    path = folder / "job.toml"
    path.write_text(f"{JOB}\n[evaluation]\nholdout = 0.3\n")
    done = CliRunner().invoke(main, ["run", str(path), "--mesh", mesh])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("AUC ")
    assert "with the columns of bank alone, " in done.stdout


def test_a_model_replaces_that_of_an_earlier_run_of_the_job(folder: Path) -> None:
    for _ in range(2):
        arguments = ["run", str(folder / "job.toml"), "--mesh", "local"]
        result = CliRunner().invoke(main, [*arguments, "--out", str(folder / "out")])
        assert result.exit_code == 0, result.stderr
    assert [one.version for one in models_in(folder / "out", "bank").versions()] == [2]


def test_without_pyarrow_it_is_said_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = CliRunner().invoke(main, ["run", str(folder / "job.toml"), "--mesh", "local"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith('which is not installed; pip install "vertikal[node]"\n')


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("shop.csv", "v,w\n1,2\nx\n", "table of shop: 'shop.csv', line 3 must have 2 cells"),
        ("job.toml", "parties = 3", "job file 'job.toml'"),
        ("job.toml", JOB + 'test = "t.csv"\n', "test must be named by all parties or by none"),
        (
            "job.toml",
            JOB.replace('"bank.csv"', '"bank.csv"\ntest = "bank.csv"') + 'test = "gone.csv"\n',
            "table of shop: 'gone.csv' cannot be read",
        ),
    ],
)
def test_bad_files_are_one_line_and_nothing_starts(
    folder: Path, file: str, text: str, said: str
) -> None:
    (folder / file).write_text(text)
    result = CliRunner().invoke(main, ["run", str(folder / "job.toml")])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {said}")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--key", "a.key"], 2, "need --as"),
        (["--as", "bank", "--key", "a.key"], 2, "--as needs --federation, --key"),
        (["--as", "bank", "--mesh", "mpi"], 2, "and the network mesh"),
    ],
)
def test_one_party_needs_its_files(
    folder: Path, arguments: list[str], code: int, words: str
) -> None:
    done = CliRunner().invoke(main, ["run", str(folder / "job.toml"), *arguments])
    assert done.exit_code == code
    assert words in " ".join(done.stderr.split())


def test_one_party_must_be_in_the_job(folder: Path) -> None:
    files = ["--federation", "f.toml", "--key", "a.key", "--certificate", "a.crt"]
    done = CliRunner().invoke(main, ["run", str(folder / "job.toml"), "--as", "zoe", *files])
    assert done.exit_code == 1
    assert done.stderr == "error: --as must be one of ['bank', 'shop'], got 'zoe'\n"
