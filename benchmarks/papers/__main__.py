"""Run all tables and figures of the papers that there is data for, and write a page per paper.

    python -m benchmarks.papers                      # everything, hours
    python -m benchmarks.papers avfkam --quick       # one paper, small sizes, into build/papers
    python -m benchmarks.papers --list
    python -m benchmarks.papers --pages              # pages of the results that are there

What has been run with the same sizes is not run again (``--again`` does), so that a run that was
broken off goes on where it was. What is missing from the data folder is listed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.datasets import is_here
from benchmarks.harness import RESULTS
from benchmarks.papers.avfkam import data as avfkam_data
from benchmarks.papers.fdskl import data as fdskl_data
from benchmarks.papers.items import ITEMS, TITLES, Item
from benchmarks.papers.pages import results_of, write_page
from vertikal.reporting.units import seconds_text

STATE = "papers-runs.json"
SETS = {"fdskl": fdskl_data, "avfkam": avfkam_data}
"""Modules in which papers keep their lists of data sets."""
QUICK = Path("build") / "papers"


def main(given: Sequence[str] | None = None) -> int:
    """Run what was chosen; return the number of items that failed."""
    options = parse(given)
    chosen = [one for one in ITEMS if not options.papers or one.paper in options.papers]
    folder = options.out or (QUICK if options.quick else RESULTS)
    if options.list:
        for item in chosen:
            lacking = missing_files(item)
            print(f"{item.id}: {'needs ' + ', '.join(lacking) if lacking else 'can be run'}")
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0 if options.pages else run_all(chosen, folder, options)
    state = read_state(folder)
    for paper in dict.fromkeys(one.paper for one in chosen):
        items = [one for one in chosen if one.paper == paper]
        lacking = sorted({name for one in items for name in missing_files(one)})
        absent = [*lacking, *absent_sets(paper)]
        page = write_page(paper, items, folder, state, absent, parts_of(paper), quick=options.quick)
        print(f"page: {page}")
    return failed


def parse(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("papers", nargs="*", choices=[*TITLES, []], help="papers by name; all")
    parser.add_argument("--quick", action="store_true", help="small sizes, some minutes")
    parser.add_argument("--again", action="store_true", help="also what has been run")
    parser.add_argument("--list", action="store_true", help="say what can be run, and end")
    parser.add_argument("--pages", action="store_true", help="only write the pages")
    parser.add_argument("--out", type=Path, help="folder of results and pages")
    return parser.parse_args(given)


def run_all(items: Sequence[Item], folder: Path, options: argparse.Namespace) -> int:
    """Run one item after the other, and say what is left and for how long.

    What is left is planned by the minutes of the items, and by how much longer or shorter than
    planned those before it took here.
    """
    commands = {one.id: arguments_of(one, folder, quick=options.quick) for one in items}
    planned = {
        one.id: 60 * (one.quick_minutes if options.quick else one.minutes)
        for one in items
        if not missing_files(one) and (options.again or not is_done(one, folder, commands[one.id]))
    }
    failed = 0
    pace, past, spent = 1.0, 0.0, 0.0
    for place, item in enumerate(items, 1):
        head = f"[{place}/{len(items)}] {item.id}"
        if lacking := missing_files(item):
            print(f"{head}: left out, the data folder lacks {', '.join(lacking)}", flush=True)
            continue
        if item.id not in planned:
            print(f"{head}: done before", flush=True)
            continue
        left = seconds_text(pace * sum(planned.values()))
        print(f"{head}: begins; about {left} left in all", flush=True)
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", *commands[item.id]], check=False)
        seconds = time.perf_counter() - began
        expected = planned.pop(item.id)
        if done.returncode:
            failed += 1
            print(f"{head}: failed with status {done.returncode}", flush=True)
            continue
        past, spent = past + expected, spent + seconds
        pace = spent / past
        note(folder, item, commands[item.id], seconds)
        left = seconds_text(pace * sum(planned.values()))
        print(f"{head}: {seconds_text(seconds)}; about {left} left", flush=True)
    return failed


def arguments_of(item: Item, folder: Path, *, quick: bool) -> list[str]:
    """The module of one item with its sizes."""
    sizes = item.quick if quick else ()
    return [f"benchmarks.papers.{item.module}", *item.given, *sizes, "--out", str(folder)]


def missing_files(item: Item) -> list[str]:
    """Files of the data folder that an item cannot do without, and that are not there."""
    return [name for name in item.files if not is_here(name)]


def absent_sets(paper: str) -> list[str]:
    """The data sets of a paper that are not in the data folder."""
    if paper in SETS:
        return list(SETS[paper].missing())
    return ["gisette"] if paper == "admm" and not is_here("gisette/gisette_scale.xz") else []


def parts_of(paper: str) -> dict[str, str]:
    """The data sets of a paper of which the data folder has a part, and which part."""
    absent = absent_sets(paper)
    known = SETS[paper].PARTS if paper in SETS else {}
    return {name: part for name, part in known.items() if name not in absent}


def is_done(item: Item, folder: Path, command: Sequence[str]) -> bool:
    """Return True if the item has been run with these sizes, and its results are there."""
    known = read_state(folder).get(item.id, {})
    return known.get("command") == list(command) and bool(results_of(item, folder))


def read_state(folder: Path) -> dict[str, Any]:
    path = folder / STATE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def note(folder: Path, item: Item, command: Sequence[str], seconds: float) -> None:
    """Keep that an item has been run; a run that is broken off goes on behind it."""
    state = read_state(folder) | {item.id: {"command": list(command), "seconds": round(seconds, 1)}}
    (folder / STATE).write_text(json.dumps(state, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
