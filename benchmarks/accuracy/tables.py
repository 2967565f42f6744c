"""Ordinary tables: federated kernel machines of three parties against learners on pooled columns.

    python -m benchmarks.accuracy.tables [--quick] [--tables adult,bank] [--methods trees,open]
                                         [--seeds 0,1,2] [--rows 20000] [--again open]

Each table is cut 75/25 by class, once per seed, and all methods see the same rows: of the training
rows at most ``--rows``, drawn by class. What a method chooses, it chooses on training rows. The
federated methods deal the columns in turn to three parties, of which the first has the labels;
they run at the levels `open` and `values`. Every result is written as soon as it is there, and is
not computed again unless ``--again`` names its method: runs can be stopped, and shared out.

Beside the JSON file stands a page with the tables, the gaps, and the time and bytes.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.accuracy.ordinary_tables import TABLES, Absent, OrdinaryTable, load
from benchmarks.accuracy.rivals import SVC_ROWS, XRFM_ROWS, Learner, installed_rivals, quality
from benchmarks.harness import RESULTS, Benchmark
from vertikal import KernelClassifier, KernelRegressor
from vertikal.reporting.rendering import render_page
from vertikal.reporting.units import bytes_text, seconds_text

Array = npt.NDArray[Any]
Results = dict[str, dict[str, Any]]

NAME = "accuracy-tables"
PARTIES = ("bank", "shop", "phone")
LEVELS = ("open", "values")
QUICK = ("breast-cancer", "diabetes", "phishing")
NOT_RUN = "not run"
WORST_GAP = -0.002
"""Least gap in AUC to default boosted trees on any one table."""
TUNED_GAP = -0.003
"""Least mean gap in AUC to tuned boosted trees."""


def federated(level: str) -> Learner:
    """The kernel machine that tunes itself, by three parties at this level."""

    def learn(
        table: OrdinaryTable, train: Array, test: Array, seed: int
    ) -> tuple[Array, dict[str, Any]]:
        names = list(table.frame)
        parties = {party: names[i :: len(PARTIES)] for i, party in enumerate(PARTIES)}
        model = _estimator(table, parties, level, seed)
        model.fit(table.frame.iloc[train], table.y[train])
        if table.regression:
            scores = np.asarray(model.predict(table.frame.iloc[test]))
        elif len(model.classes_) == 2:
            scores = np.asarray(model.decision_function(table.frame.iloc[test]))
        else:
            scores = np.full((len(test), table.y.max() + 1), -np.inf)
            scores[:, model.classes_] = model.predict_proba(table.frame.iloc[test])
        return scores, {"bytes": sum(model.report_.bytes_sent.values())}

    return learn


def _estimator(
    table: OrdinaryTable, parties: Mapping[str, Sequence[str]], level: str, seed: int
) -> Any:
    kind = KernelRegressor if table.regression else KernelClassifier
    return kind(parties, disclosure=level, random_state=seed)


class Kept:
    """Results in one JSON file, which several runs may add to at once."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self._path = path
        self._settings = settings

    def read(self) -> Results:
        """All results that were computed with these settings."""
        if not self._path.exists():
            return {}
        content = json.loads(self._path.read_text())
        if content["settings"] != self._settings:
            return {}
        return {key: one for key, one in content["figures"].items() if "/" in key}

    def add(self, key: str, result: dict[str, Any]) -> None:
        with self.locked():
            run = Benchmark(self._path.stem, self._settings, self.read() | {key: result})
            run.save(self._path.parent)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs from writing meanwhile."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def main() -> None:
    options = _arguments()
    rivals, uninstalled = installed_rivals()
    methods = rivals | {level: federated(level) for level in LEVELS}
    tables = options.tables or (QUICK if options.quick else tuple(TABLES))
    name = f"{NAME}-quick" if options.quick else NAME
    settings = {
        "split": "75/25 by class",
        "training rows": f"at most {options.rows}",
        "training rows of SVC": f"at most {SVC_ROWS}",
        "training rows of xRFM": f"at most {XRFM_ROWS}",
        "parties": f"{len(PARTIES)}, columns dealt in turn, labels at the first",
    }
    kept = Kept(options.out / f"{name}.json", settings)
    absent = {}
    for title in tables:
        try:
            table = load(title)
        except Absent as reason:
            absent[title] = str(reason)
            print(f"{title} left out: {reason}", flush=True)
            continue
        for seed in options.seeds:
            for method in options.methods or methods:
                if method not in methods:
                    print(f"{method} is not installed", flush=True)
                    continue
                key = f"{title}/{seed}/{method}"
                if key not in kept.read() or method in options.again:
                    kept.add(key, _measured(key, methods[method], table, seed, options.rows))
    missing = absent | {name: "not installed" for name in uninstalled}
    with kept.locked():
        report(Benchmark(name, settings, kept.read()), missing, options.out)


def _arguments() -> argparse.Namespace:
    def names(text: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in text.split(","))

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the JSON file")
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK)}; one seed")
    parser.add_argument("--tables", type=names, default=(), help=", ".join(TABLES))
    parser.add_argument("--methods", type=names, default=(), help="all that are installed")
    parser.add_argument("--again", type=names, default=(), help="methods to run anew")
    parser.add_argument("--seeds", type=lambda text: tuple(map(int, names(text))), default=None)
    parser.add_argument("--rows", type=int, default=None, help="most training rows, 20,000")
    options = parser.parse_args()
    options.seeds = options.seeds or ((0,) if options.quick else (0, 1, 2))
    options.rows = options.rows or (2_000 if options.quick else 20_000)
    unknown = set(options.tables) - set(TABLES)
    if unknown:
        parser.error(f"tables must be some of {list(TABLES)}, got {sorted(unknown)}")
    return options


def _measured(
    key: str, learner: Learner, table: OrdinaryTable, seed: int, rows: int
) -> dict[str, Any]:
    train, test = table.split(seed, rows)
    began = time.perf_counter()
    scores, chosen = learner(table, train, test, seed)
    result = {
        "metric": table.metric,
        "score": quality(table, test, scores),
        "seconds": round(time.perf_counter() - began, 2),
        "rows": [len(train), len(test)],
        "chosen": chosen,
    }
    print(f"{key:<40} {table.metric} {result['score']:.4f} {result['seconds']:>8} s", flush=True)
    return result


def report(run: Benchmark, missing: Mapping[str, str], folder: Path) -> None:
    """Print the means by table and method, hold the gaps against the targets, write the page."""
    results = run.figures
    tables = list(dict.fromkeys(key.split("/")[0] for key in results))
    methods = list(dict.fromkeys(key.split("/")[2] for key in results))
    headers = ("table", "metric", "seeds", *methods)
    scores, costs = [], []
    for table in tables:
        found = [_of(results, table, method) for method in methods]
        seeds = max(len(one) for one in found)
        metric = next(one["metric"] for values in found for one in values)
        scores.append((table, metric, seeds, *(_score(one, seeds) for one in found)))
        costs.append((table, *(_cost(one) for one in found)))
    _print(headers, scores)
    _print(("table", *methods), costs)
    gaps = {
        (level, rival): gap
        for level in LEVELS
        for rival in ("trees", "tuned trees")
        if (gap := _gaps(results, tables, level, rival))
    }
    for (level, rival), gap in gaps.items():
        mean, worst = float(np.mean(list(gap.values()))), min(gap, key=lambda name: gap[name])
        limit = 0.0 if rival == "trees" else TUNED_GAP
        what = f"{level} against {rival}, {len(gap)} tables"
        run.target(f"{what}: mean gap in AUC", mean, limit, at_most=False)
        if rival == "trees":
            run.target(f"{what}: worst gap in AUC ({worst})", gap[worst], WORST_GAP, at_most=False)
    for name, reason in missing.items():
        print(f"not in it: {name} ({reason})")
    run.figures = {**results, "not in it": dict(missing)}
    path = run.write(folder)
    page = render_page(
        "benchmarks.accuracy",
        "tables.html",
        title="Ordinary tables",
        subtitle="Three parties against learners on pooled columns",
        headers=headers,
        scores=scores,
        methods=("table", *methods),
        costs=costs,
        targets=[
            (one["name"], f"{one['value']:+.4f}", f"{one['limit']:+.4f}", _met(one["met"]))
            for one in run.targets
        ],
        gaps=[
            (table, *(_signed(gap.get(table)) for gap in gaps.values()))
            for table in tables
            if any(table in gap for gap in gaps.values())
        ],
        gap_headers=("table", *(f"{level} − {rival}" for level, rival in gaps)),
        missing=list(missing.items()),
        settings=list(run.settings.items()),
    )
    path.with_suffix(".html").write_text(page, encoding="utf-8")


def _of(results: Results, table: str, method: str) -> list[dict[str, Any]]:
    return [one for key, one in results.items() if key.split("/")[0::2] == [table, method]]


def _score(found: Sequence[Mapping[str, Any]], seeds: int) -> str:
    """Mean score, and of how many seeds if not of all."""
    if not found:
        return NOT_RUN
    mean = f"{np.mean([one['score'] for one in found]):.4f}"
    return mean if len(found) == seeds else f"{mean} ({len(found)} of {seeds})"


def _cost(found: Sequence[Mapping[str, Any]]) -> str:
    """Mean seconds and, of federated methods, bytes."""
    if not found:
        return NOT_RUN
    words = seconds_text(float(np.mean([one["seconds"] for one in found])))
    sent = [one["chosen"]["bytes"] for one in found if "bytes" in one["chosen"]]
    return f"{words}, {bytes_text(int(np.mean(sent)))}" if sent else words


def _gaps(results: Results, tables: Sequence[str], ours: str, rival: str) -> dict[str, float]:
    """The mean gap in AUC by table, over the seeds that both methods have."""
    found = {}
    for table in tables:
        pairs = [
            one["score"] - results[other]["score"]
            for key, one in results.items()
            if key.split("/")[0::2] == [table, ours]
            and one["metric"] == "AUC"
            and (other := f"{table}/{key.split('/')[1]}/{rival}") in results
        ]
        if pairs:
            found[table] = float(np.mean(pairs))
    return found


def _signed(gap: float | None) -> str | None:
    return None if gap is None else f"{gap:+.4f}"


def _met(met: bool) -> str:
    return "met" if met else "missed"


def _print(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    table = [tuple(headers), *(tuple("–" if c is None else str(c) for c in row) for row in rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(headers))]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
    print()


if __name__ == "__main__":
    main()
