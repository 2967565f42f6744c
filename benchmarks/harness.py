"""Steps of every benchmark: repeat, take the median, hold against targets, write one JSON file.

The file says what was measured, with which settings and versions, on how many cores and under which
load, so that a number can be judged by somebody who was not there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.charts import write_svg

RESULTS = Path(__file__).parent / "results"
REST = 0.3
"""Seconds in which nothing runs, before each of several functions in turn."""
PACKAGES = ("vertikal", "numpy", "scipy", "scikit-learn", "numba", "cryptography")


@dataclass
class Benchmark:
    """One benchmark run: figures, and the targets that they are held against."""

    name: str
    settings: dict[str, Any]
    figures: dict[str, Any] = field(default_factory=dict)
    targets: list[dict[str, Any]] = field(default_factory=list)
    _load: list[float] = field(default_factory=lambda: [round(os.getloadavg()[0], 2)])
    _began: float = field(default_factory=time.perf_counter)

    def figure(self, name: str, value: Any) -> Any:
        """Keep and print one figure."""
        self.figures[name] = value
        shown = f"{value:.5g}" if isinstance(value, float) else value
        print(f"{name:<64} {shown}", flush=True)
        return value

    def target(self, name: str, value: float, limit: float, *, at_most: bool) -> None:
        """Hold a figure against its target; a miss is printed and written down, not hidden."""
        met = value <= limit if at_most else value >= limit
        self.targets.append(
            {
                "name": name,
                "value": value,
                "limit": limit,
                "sense": "at most" if at_most else "at least",
                "met": met,
            }
        )
        sense = "≤" if at_most else "≥"
        mark = "met   " if met else "MISSED"
        print(f"  {mark} {name}: {value:.5g} {sense} {limit:g}", flush=True)

    def write(self, folder: Path) -> Path:
        """Write the JSON file and print its path; say how many targets were met."""
        path = self.save(folder)
        met = sum(target["met"] for target in self.targets)
        print(f"{met} of {len(self.targets)} targets met; written to {os.path.relpath(path)}")
        return path

    def save(self, folder: Path) -> Path:
        """Write the JSON file."""
        self._load.append(round(os.getloadavg()[0], 2))
        content = {
            "benchmark": self.name,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - self._began, 1),
            "settings": self.settings,
            "versions": {"python": platform.python_version()} | _versions(),
            "machine": {
                "processor": platform.machine(),
                "cores": len(os.sched_getaffinity(0)),
                "load at start and end": self._load,
            },
            "figures": self.figures,
            "targets": self.targets,
        }
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        return path

    def draw(self, folder: Path, chart: str, part: str = "") -> Path:
        """Write a chart as a file of its own, beside the JSON."""
        return write_svg(chart, folder, f"{self.name}{part and '-'}{part}")


def seconds(function: Callable[[], Any]) -> float:
    """Wall time of one call."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def alternating(
    functions: dict[str, Callable[[], Any]], repeats: int, *, warm: bool = False
) -> dict[str, list[float]]:
    """Wall times of several functions, run in turn, so that a busy moment hits all of them.

    Before each is a rest: threads of OpenBLAS go on spinning for a while after a product, and would
    take a core from whoever comes next. ``warm`` calls each once more before, untimed: some
    virtual machines hand memory back to their host while nobody has it, and get it again at a
    hundredth of its speed, which says nothing about the functions.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            time.sleep(REST)
            if warm:
                function()
            times[name].append(seconds(function))
    return times


def median(values: list[float]) -> float:
    return float(statistics.median(values))


def arguments(description: str, **defaults: Any) -> argparse.Namespace:
    """``--out FOLDER``, and one option per keyword with its default."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the JSON file")
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found
