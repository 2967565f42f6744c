"""docs/architecture.md and the code agree: the drawing shows the rooms, the walks are what runs."""

from __future__ import annotations

import inspect
import re
import sys
import threading
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.project.test_imports import PACKAGE, module_imports
from tests.project.test_paper_map import resolve

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def drawing(page: str) -> list[list[str]]:
    """The rooms on each line of the drawing, from the top."""
    (block,) = re.findall(r"^```text title=\"Rooms\"\n(.*?)^```", page, re.M | re.S)
    lines = (re.findall(r"\b[a-z_]+(?=/|\.py)", line) for line in block.splitlines())
    return [rooms for rooms in lines if rooms]


def walk(page: str, heading: str) -> list[str]:
    """The functions of one walk, in its order: the first dotted path of each numbered line."""
    (section,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    return re.findall(r"^\d+\. `(vertikal\.[\w.]+)`", section, re.M)


def order_of_calls(paths: list[str], run: Callable[[], object]) -> list[str]:
    """Those of these functions that ``run`` calls, in the order of their first calls."""
    codes = {}
    for path in paths:
        found = resolve(path)
        found = found.fget if isinstance(found, property) else found
        codes[inspect.unwrap(found).__code__] = path
    assert len(codes) == len(paths), "a function stands twice in the walk"
    seen: dict[str, None] = {}

    def note(frame: object, event: str, argument: object) -> None:
        if event == "call" and (path := codes.get(frame.f_code)) is not None:
            seen.setdefault(path)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        # Threads that an earlier test began are not watched; with one core none of them works.
        with patch("vertikal.compute.place.cores", return_value=1):
            run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(seen)


def room_of(path: str) -> str:
    return path.split(".")[1]


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_every_room_is_drawn_once(page):
    drawn = [room for line in drawing(page) for room in line]
    there = {part.stem for part in PACKAGE.iterdir() if part.stem not in ("__init__", "__main__")}
    assert sorted(drawn) == sorted(there - {"__pycache__"})


def test_imports_point_down_the_drawing(page):
    depth = {room: number for number, line in enumerate(drawing(page)) for room in line}
    upward = {
        (module, target)
        for module, targets in module_imports(PACKAGE).items()
        for target in targets
        if (here := module.split(".")[0]) in depth
        and (there := target.split(".")[0]) != here
        and depth[there] <= depth[here]
    }
    assert upward == set()


def missing_files(markdown: str, roots: tuple[Path, ...]) -> list[str]:
    """Python files that a page names in backticks and that are nowhere below the roots."""
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_0-9]+\.py)`", markdown)
    return [name for name in named if not any((root / name).is_file() for root in roots)]


@pytest.mark.parametrize("file", sorted(PAGE.parent.glob("*.md")), ids=lambda file: file.stem)
def test_every_file_that_a_page_names_is_there(file):
    assert missing_files(file.read_text(encoding="utf-8"), (PACKAGE, PAGE.parents[1])) == []


def test_a_file_that_moved_is_noticed():
    page = "See `data/formats.py` and `data/file_formats.py`."
    assert missing_files(page, (PACKAGE,)) == ["data/formats.py"]


FIT = "A row through `fit`"
JOB = "A job from `submit` to the model"
PASS = "A pass with `values`"


def test_the_walk_of_fit_is_what_runs(page):
    from sklearn.datasets import make_classification

    from vertikal import FDSKLClassifier

    X, y = make_classification(60, 6, random_state=0)
    # A bandwidth that is given: its agreement would take secure sums before the phases do.
    model = FDSKLClassifier(parties=3, bandwidth=1.0, n_components=16, random_state=0)
    steps = walk(page, FIT)
    assert len(steps) > 8
    assert order_of_calls(steps, lambda: model.fit(X, y)) == steps


def test_the_walk_of_fit_enters_each_room_once(page):
    rooms = [room for room, _ in groupby(map(room_of, walk(page, FIT)))]
    assert len(set(rooms)) == len(rooms)


def test_the_walk_of_a_pass_is_what_runs(page):
    from sklearn.datasets import make_classification

    from vertikal import FDSKLClassifier

    X, y = make_classification(60, 6, random_state=0)
    model = FDSKLClassifier(
        parties=3, n_components=16, disclosure="values", tol=1.0, random_state=0
    )
    steps = walk(page, PASS)
    assert len(steps) > 5
    assert order_of_calls(steps, lambda: model.fit(X, y)) == steps


def test_the_walk_of_a_job_is_what_runs(page, tmp_path, monkeypatch):
    from tests.node.services import trio
    from tests.organisations import lay_out, write_job
    from vertikal.node import service

    monkeypatch.setattr(service, "BEAT", 0.2)
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')

    def run() -> None:
        with trio(tmp_path) as world:
            digest = world.submit().digest
            world.approve(digest, "bank", "shop")
            world.done(digest)

    steps = walk(page, JOB)
    assert len(steps) > 8
    assert order_of_calls(steps, run) == steps


def test_a_wrong_order_is_noticed():
    steps = ["vertikal.ring.integers.Ring.__init__", "vertikal.files.sync_folder"]

    def run() -> None:
        from vertikal.files import sync_folder
        from vertikal.ring.integers import Ring

        sync_folder(PACKAGE)
        Ring(8)

    assert order_of_calls(steps, run) == list(reversed(steps))
