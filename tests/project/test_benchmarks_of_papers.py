"""`python -m benchmarks.papers`: what it runs, what it leaves out, where it goes on, its pages."""

from __future__ import annotations

import importlib.util
import json
import lzma
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from benchmarks import datasets
from benchmarks.harness import Benchmark
from benchmarks.papers import __main__ as runner
from benchmarks.papers.admm import problems
from benchmarks.papers.avfkam import data as avfkam
from benchmarks.papers.avfkam.figure3 import figure_with_spread, ratios
from benchmarks.papers.fdskl import data as fdskl
from benchmarks.papers.items import ITEMS, TITLES, Item
from benchmarks.papers.pages import across, beside, results_of, time_of, write_page
from benchmarks.papers.sets import at_hand
from vertikal.reporting.units import seconds_text

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
        "quick_minutes": 0.5,
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
    assert 0 < one.quick_minutes <= one.minutes


def test_quick_is_a_quarter_of_an_hour():
    assert sum(one.quick_minutes for one in ITEMS) <= 13


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


def test_the_time_left_is_that_of_the_plan_at_the_pace_so_far(tmp_path, monkeypatch, begun, capsys):
    """Three items of a minute, the first of which takes half of it; what lacks data counts not."""
    names = ("one", "two", "three", "four")
    monkeypatch.setattr(
        runner,
        "ITEMS",
        tuple(
            item(name, module=f"admm.{name}", files=("nobody/has.this",) if name == "four" else ())
            for name in names
        ),
    )
    clock = iter((0.0, 30.0, 30.0, 150.0, 150.0, 150.0))
    monkeypatch.setattr(runner, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    runner.main(["admm", "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert f"one: begins; about {seconds_text(180)} left in all" in said
    assert f"one: {seconds_text(30)}; about {seconds_text(60)} left" in said
    assert f"two: {seconds_text(120)}; about {seconds_text(75)} left" in said


def test_other_papers_are_left_alone(tmp_path, monkeypatch, begun):
    monkeypatch.setattr(runner, "ITEMS", (item("one", module="admm.one"),))
    assert runner.main(["fdskl", "--out", str(tmp_path)]) == 0
    assert begun == []
    assert list(tmp_path.iterdir()) == []


def test_a_page_has_theirs_beside_ours(tmp_path):
    one, two = item("one"), item("two")
    write_result(tmp_path, "papers-one", loss=0.123456, curve=list(range(9)), by={"a": 1.5})
    (tmp_path / "papers-one-levels.svg").write_text(CHART)
    seconds, parts = {one.id: {"seconds": 90.0}}, {"SUSY": "30,000 rows of it"}
    path = write_page("admm", (one, two), tmp_path, seconds, ["gisette"], parts)
    page = path.read_text()
    assert "0.5 &amp; more" in page
    assert "holds &lt;in part&gt;" in page
    for words in ("0.12346", "a: 1.5", "a chart", "gisette", "30,000 rows of it"):
        assert words in page
    assert "There is no result of ours here." in page
    assert f"It took {seconds_text(90.0)}." in page
    assert "[0, 1, 2" not in page
    assert "<style>a { }</style>" not in page
    small = "of the small sizes of --quick"
    assert small not in page
    quick = write_page("admm", (one,), tmp_path, {}, [], quick=True)
    assert small in quick.read_text()


def test_a_published_number_stands_beside_its_figure():
    figures = {
        "a9a: TSAM: test AUC, mean": 0.9,
        "a9a: TSAM: as published for a9a": 0.8999,
        "a9a: FDSKL dsg: test AUC, mean": 0.89,
        "a9a: FDSKL exact: test AUC, mean": 0.9,
        "a9a: FDSKL as published": 0.4996,
        "minutes": 0.5,
        "minutes, published": "more than 900",
        "minutes of another, published": 46,
        "by split": [0.9, 0.8, 0.7, 0.6],
        "half of the users": [0.79, 0.2],
    }
    assert beside(figures, {"half of the users": ".797, .194"}) == [
        ("a9a: TSAM: test AUC, mean", "0.9", "0.8999"),
        ("a9a: FDSKL dsg: test AUC, mean", "0.89", "0.4996"),
        ("a9a: FDSKL exact: test AUC, mean", "0.9", "0.4996"),
        ("minutes", "0.5", "more than 900"),
        ("half of the users", "0.79, 0.2", ".797, .194"),
        ("minutes of another", "not measured", "46"),
    ]


def test_the_time_is_that_of_the_run_or_of_the_files_that_know_it():
    old, new = {"figures": {}}, {"figures": {}, "seconds": 45.0}
    assert time_of([new, new], {"seconds": 70.0}) == seconds_text(70)
    assert time_of([new, new], {}) == seconds_text(90)
    assert time_of([new, old], {}) == f"more than {seconds_text(45)}"
    assert time_of([old], {}) is None


def test_methods_on_several_sets_are_a_table():
    rows = [
        ("a9a: TSAM: test AUC, mean", "0.90612", "0.8999"),
        ("a9a: TSAM: standard deviation", "0.0031", ""),
        ("a9a: TSAM: seconds", "3.5", ""),
        ("w8a: TSAM: test AUC, mean", "0.97", ""),
        ("w8a: FDSKL, exact: test AUC, mean", "0.98", ""),
    ]
    assert across(rows) == (
        ["test AUC", "a9a", "w8a"],
        [
            ["TSAM", "0.9061\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.0031", "0.9700"],
            ["TSAM, published", "0.8999", ""],
            ["FDSKL, exact", "", "0.9800"],
        ],
    )
    assert across(rows[:3]) is None
    rows = [(f"{data}: minutes of FDSKL", ours, "14") for data, ours in (("a", "0.5"), ("b", "–"))]
    assert across(rows) == (
        ["minutes", "a", "b"],
        [["FDSKL", "0.5000", "–"], ["FDSKL, published", "14", "14"]],
    )
    rows = [
        ("a: AVFKAM / VFKAM: time to that AUC", "0.5", ""),
        ("a: AVFKAM / VFKAM: time to that AUC, least and most", "0.4, not reached", ""),
        ("b: AVFKAM / VFKAM: time to that AUC", "0.6", ""),
    ]
    assert across(rows) == (
        ["time to that AUC", "a", "b"],
        [["AVFKAM / VFKAM", "0.5000 (0.4000 to not reached)", "0.6000"]],
    )


def test_parts_of_sets_have_a_name_or_a_word_of_their_own():
    for module in (avfkam, fdskl):
        assert module.PARTS
        sets = getattr(module, "SETS", None) or module.FILES
        assert set(module.PARTS) <= set(sets)
    assert "rcv1-small" in runner.parts_of("avfkam") or "rcv1-small" in avfkam.missing()


def test_results_of_several_data_sets_belong_to_one_item(tmp_path):
    for name in ("papers-x-a9a", "papers-x-cod-rna", "papers-x", "papers-y-a9a"):
        write_result(tmp_path, name)
    many, single = item(results="papers-x-"), item(results="papers-x")
    found = [path.stem for path in results_of(many, tmp_path)]
    assert found == ["papers-x-a9a", "papers-x-cod-rna"]
    assert [path.stem for path in results_of(single, tmp_path)] == ["papers-x"]


def test_what_can_be_run_is_listed(monkeypatch, capsys):
    monkeypatch.setattr(runner, "ITEMS", (item("one"), item("two", files=("nobody/has.this",))))
    assert runner.main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "admm one: can be run",
        "admm two: needs nobody/has.this",
    ]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder of its own, empty at first."""
    for module in (datasets, fdskl, avfkam):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    return tmp_path


def write_svmlight(path, width, rows=12):
    """Write rows in LIBSVM's format, as its page has them: columns from 1 on, labels −1 and +1."""
    X = sparse.random(rows, width, density=min(1.0, 20 / width), random_state=rows).tolil()
    X[:, 0] = np.arange(1, rows + 1)[:, None]
    X[:, width - 1] = 1.0
    path.parent.mkdir(exist_ok=True)
    plain = path.with_suffix(".txt")
    dump_svmlight_file(X.tocsr(), np.resize([1, -1, -1], rows), str(plain), zero_based=False)
    path.write_bytes(lzma.compress(plain.read_bytes()))
    return X.toarray()


@pytest.mark.parametrize(
    ("name", "width"), [("gisette", 5000), ("real-sim", 20_958), ("epsilon", 2000), ("w8a", 300)]
)
def test_fdskls_sets_are_read_in_libsvms_format(folder, name, width):
    files = fdskl.SETS[name].files
    assert fdskl.missing()[name] == ", ".join(files)
    written = np.vstack(
        [write_svmlight(folder / one, width, 12 + i) for i, one in enumerate(files)]
    )
    assert name not in fdskl.missing()
    X, y = fdskl.SETS[name].read(fdskl.SETS[name])
    np.testing.assert_allclose(X.toarray(), written, atol=1e-6)
    assert set(y.tolist()) == {-1.0, 1.0}
    split = fdskl.split_of(name, 0, 6)
    assert split.X.shape[0] == len(split.y) == 6
    assert split.X_test.shape[0] == len(split.y_test) >= 3
    # Up to a thousand columns a set is dense and scaled; beyond it stays as it is.
    assert sparse.issparse(split.X) == (width > fdskl.WIDEST)


@pytest.mark.parametrize(("name", "width"), [("real-sim", 20_958), ("rcv1", 47_236)])
def test_avfkams_sets_are_read_in_libsvms_format(folder, name, width):
    assert name in avfkam.missing()
    with pytest.raises(SystemExit, match="is not in the data folder"):
        avfkam.rows_of(name, 0)
    files = {"real-sim": ["real-sim/real-sim.xz"]}
    rcv1 = ["rcv1/rcv1_train.binary.xz", "rcv1/rcv1_test.binary.xz"]
    for i, one in enumerate(files.get(name, rcv1)):
        write_svmlight(folder / one, width, 20 + i)
    assert name not in avfkam.missing()
    rows = avfkam.rows_of(name, 0)
    assert sparse.issparse(rows.X)
    assert set(rows.y.tolist()) == set(rows.y_test.tolist()) == {0, 1}
    assert len(rows.y) == 4 * len(rows.y_test) or name == "rcv1"
    # Constant columns are gone, the last one among them.
    assert rows.X.shape[1] == rows.X_test.shape[1] < width


def test_gisette_is_parted_as_in_the_paper(folder):
    for part in ("gisette_scale.xz", "gisette_scale.t.xz"):
        written = write_svmlight(folder / "gisette" / part, 5000)
    problem = problems.gisette()
    np.testing.assert_allclose(problem.X_test, written, atol=1e-6)
    assert [len(columns) for columns in problem.columns] == [2000, 2000, 1000]


def test_tables_of_credit_have_means_in_empty_cells(folder):
    path = folder / "give-me-some-credit" / "cs-training.csv.xz"
    path.parent.mkdir()
    head = ",SeriousDlqin2yrs,MonthlyIncome,age\n"
    body = "".join(f"{i},{i % 2},{'' if i == 3 else 100 * i},{30 + i}\n" for i in range(1, 9))
    path.write_bytes(lzma.compress((head + body).encode()))
    X, y = fdskl.SETS["givemecredit"].read(fdskl.SETS["givemecredit"])
    assert X.shape == (8, 2)
    assert X[2, 0] == pytest.approx(np.mean([100, 200, 400, 500, 600, 700, 800]))
    assert y.tolist() == [1.0, -1.0] * 4


def test_sets_that_are_absent_are_said_and_left_out(capsys):
    absent = {"gisette": "gisette/gisette_scale.xz"}
    assert list(at_hand("", ("a9a", "gisette", "w8a"), absent)) == ["a9a", "w8a"]
    said = "left out: gisette (gisette/gisette_scale.xz is not in the data folder)\n"
    assert capsys.readouterr().out == said
    assert list(at_hand("w8a,a9a", ("a9a", "gisette", "w8a"), absent)) == ["w8a", "a9a"]
    assert capsys.readouterr().out == ""


def test_repeats_are_told_by_median_and_spread():
    """Ratios are of the same repeat; a run that does not reach the goal is said to."""
    run = Benchmark("figure9", {})
    figure_with_spread(run, "ratio", ratios([1.0, 3.0, 2.0], [4.0, 6.0, 2.0]))
    figure_with_spread(run, "missed", ratios([1.0, math.inf], [2.0, math.inf]))
    figure_with_spread(run, "once", [7.0])
    assert run.figures == {
        "ratio": 0.5,
        "ratio, least and most": [0.25, 1.0],
        "missed": "not reached",
        "missed, least and most": [0.5, "not reached"],
        "once": 7.0,
    }
