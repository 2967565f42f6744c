"""`python -m benchmarks.papers`: what it runs, what it leaves out, where it goes on, its pages."""

from __future__ import annotations

import importlib.util
import json
from types import SimpleNamespace

import pytest

from benchmarks.papers import __main__ as runner
from benchmarks.papers.items import ITEMS, TITLES, Item
from benchmarks.papers.pages import results_of, write_page

CHART = '<svg viewBox="0 0 1 1"><style>a { }</style><title>a chart</title></svg>'


def item(name="Figure 9", **changes):
    given = {
        "paper": "admm",
        "name": name,
        "module": "admm.figure9",
        "results": f"papers-{name.lower().replace(' ', '-')}",
        "published": "0.5 & more",
        "verdict": "holds <in part>",
        "minutes": 1.0,
    }
    return Item(**(given | changes))


def write_result(folder, name, **figures):
    content = {
        "benchmark": name,
        "when": "2026-01-01",
        "settings": {"rows": 7},
        "figures": figures,
    }
    (folder / f"{name}.json").write_text(json.dumps(content))


@pytest.mark.parametrize("one", ITEMS, ids=lambda one: one.id)
def test_every_item_has_a_benchmark_of_a_paper(one):
    assert one.paper in TITLES
    assert importlib.util.find_spec(f"benchmarks.papers.{one.module}") is not None
    assert one.published
    assert one.verdict
    assert one.minutes > 0


def test_items_are_told_apart():
    assert len({one.id for one in ITEMS}) == len(ITEMS)
    assert len({(one.module, one.given) for one in ITEMS}) == len(ITEMS)


@pytest.fixture
def begun(monkeypatch):
    """Commands that the runner began, in place of running them; each leaves its result."""
    found = []

    def run(command, check):
        found.append(command[2])
        folder = runner.Path(command[command.index("--out") + 1])
        if "broken" in command[2]:
            return SimpleNamespace(returncode=3)
        write_result(folder, f"papers-{command[2].rpartition('.')[2]}", loss=0.25)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(runner.subprocess, "run", run)
    return found


def test_it_goes_on_where_it_was(tmp_path, monkeypatch, begun, capsys):
    items = (
        item("one", module="admm.one"),
        item("two", module="admm.broken"),
        item("three", module="admm.three", files=("nobody/has.this",)),
        item("four", module="admm.four", quick=("--rows", "5")),
    )
    monkeypatch.setattr(runner, "ITEMS", items)
    given = ["admm", "--out", str(tmp_path)]
    assert runner.main(given) == 1
    assert begun == [f"benchmarks.papers.admm.{name}" for name in ("one", "broken", "four")]
    said = capsys.readouterr().out
    assert "[2/4] admm two: failed with status 3" in said
    assert "[3/4] admm three: left out, the data folder lacks nobody/has.this" in said
    assert "left in all" in said
    begun.clear()
    # Only what failed is run again; other sizes are another run.
    assert runner.main(given) == 1
    assert begun == ["benchmarks.papers.admm.broken"]
    assert "admm one: done before" in capsys.readouterr().out
    begun.clear()
    runner.main([*given, "--quick"])
    assert "benchmarks.papers.admm.four" in begun
    assert "benchmarks.papers.admm.one" not in begun
    begun.clear()
    runner.main([*given, "--again"])
    assert "benchmarks.papers.admm.one" in begun
    page = (tmp_path / "papers-admm.html").read_text()
    assert "nobody/has.this" in page


def test_other_papers_are_left_alone(tmp_path, monkeypatch, begun):
    monkeypatch.setattr(runner, "ITEMS", (item("one", module="admm.one"),))
    assert runner.main(["fdskl", "--out", str(tmp_path)]) == 0
    assert begun == []
    assert list(tmp_path.iterdir()) == []


def test_a_page_has_theirs_beside_ours(tmp_path):
    one, two = item("one"), item("two")
    write_result(tmp_path, "papers-one", loss=0.123456, curve=list(range(9)), by={"a": 1.5})
    (tmp_path / "papers-one-levels.svg").write_text(CHART)
    path = write_page("admm", (one, two), tmp_path, {one.id: {"seconds": 90.0}}, ["gisette"])
    page = path.read_text()
    assert "0.5 &amp; more" in page
    assert "holds &lt;in part&gt;" in page
    for words in ("0.12346", "a: 1.5", "a chart", "gisette"):
        assert words in page
    assert "There is no result of ours here." in page
    assert "[0, 1, 2" not in page
    assert "<style>a { }</style>" not in page


def test_results_of_several_data_sets_belong_to_one_item(tmp_path):
    for name in ("papers-x-a9a", "papers-x-w8a", "papers-x", "papers-y-a9a"):
        write_result(tmp_path, name)
    many, single = item(results="papers-x-"), item(results="papers-x")
    assert [path.stem for path in results_of(many, tmp_path)] == ["papers-x-a9a", "papers-x-w8a"]
    assert [path.stem for path in results_of(single, tmp_path)] == ["papers-x"]


def test_what_can_be_run_is_listed(monkeypatch, capsys):
    monkeypatch.setattr(runner, "ITEMS", (item("one"), item("two", files=("nobody/has.this",))))
    assert runner.main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "admm one: can be run",
        "admm two: needs nobody/has.this",
    ]
