"""One HTML page per paper: each table and figure, theirs beside ours, the verdict, the settings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from benchmarks.papers.items import TITLES, Item
from vertikal.reporting.rendering import render_page
from vertikal.reporting.units import seconds_text

MOST_FIGURES = 100
"""Numbers of one result that a page shows; the JSON file has all."""
NONE = "not measured"
GAP = "\N{NO-BREAK SPACE}"
SMALL = ". Our numbers are of the small sizes of --quick; verdicts are about the full ones"
ACROSS = re.compile(
    r"([\w-]+): (?:(.+): (test AUC|test error|time to that AUC)(?:, mean)?|(minutes) of (.+))"
)
"""Names of figures that a method has on several data sets."""


def write_page(
    paper: str,
    items: Sequence[Item],
    folder: Path,
    state: Mapping[str, Any],
    absent: Sequence[str],
    parts: Mapping[str, str] | None = None,
    *,
    quick: bool = False,
) -> Path:
    """Write the page of one paper from the result files in ``folder``.

    ``absent`` are data sets that are not here; ``parts`` says of which only a part is. ``quick``
    results are of small sizes, which the verdicts are not about.
    """
    sections = [section_of(item, folder, state.get(item.id, {})) for item in items]
    page = render_page(
        "benchmarks.papers",
        "paper.html",
        title=TITLES[paper],
        subtitle="Tables and figures: published beside ours" + (SMALL if quick else ""),
        sections=sections,
        absent=[(name,) for name in absent],
        parts=list((parts or {}).items()),
        overview=[
            (one["name"], in_short(one["verdict"]), one["state"], one["seconds"] or "not kept")
            for one in sections
        ],
    )
    path = folder / f"papers-{paper}.html"
    path.write_text(page, encoding="utf-8")
    return path


def section_of(item: Item, folder: Path, run: Mapping[str, Any]) -> dict[str, Any]:
    """Gather what the page says of one item."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in results_of(item, folder)]
    charts = [chart_of(path) for path in results_of(item, folder, ".svg")]
    rows = [
        (str(one["benchmark"]), *row)
        for one in found
        for row in beside(one["figures"], item.theirs)[:MOST_FIGURES]
    ]
    return {
        "name": item.name,
        "published": item.published,
        "verdict": item.verdict,
        "state": "no result here" if not found else f"{len(found)} result files",
        "seconds": time_of(found, run),
        "across": across([row[1:] for row in rows]),
        "figures": rows,
        "settings": [
            (str(one["benchmark"]), name, str(value))
            for one in found
            for name, value in (one["settings"] | run_of(one)).items()
            if value != ""
        ],
        "charts": charts,
    }


def time_of(found: Sequence[Mapping[str, Any]], run: Mapping[str, Any]) -> str | None:
    """Tell how long a run took, or its results together as far as their files say so."""
    if "seconds" in run:
        return seconds_text(run["seconds"])
    known = [one["seconds"] for one in found if "seconds" in one]
    if not known:
        return None
    return ("more than " if len(known) < len(found) else "") + seconds_text(sum(known))


def run_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """Tell when a result was measured, and in how many seconds where its file says so."""
    return {name: result[name] for name in ("when", "seconds") if name in result}


def beside(
    figures: Mapping[str, Any], published: Mapping[str, str] | None = None
) -> list[tuple[str, str, str]]:
    """List figures by name with ours and the paper's, which is empty where it gives none.

    The paper's are in ``published`` by the names of ours, or among the figures: "…, published" is
    that of the figure "…"; "METHOD as published" and "METHOD: as published for SET" are that of the
    figures "METHOD …: test AUC, mean". Those of which there is none of ours come last.
    """
    theirs = dict(published or {})
    ours = {}
    for name, value in figures.items():
        said = shown(value)
        if name.endswith(", published"):
            theirs[name.removesuffix(", published")] = said or ""
        elif mark := re.fullmatch(r"(.*?):? as published( for [\w-]+)?", name):
            of_method = re.compile(re.escape(mark[1]) + r"( \w+)?: test AUC, mean")
            theirs |= {one: said or "" for one in figures if of_method.fullmatch(one)}
        elif said is not None:
            ours[name] = said
    rows = [(name, said, theirs.get(name, "")) for name, said in ours.items()]
    return rows + [(name, NONE, said) for name, said in theirs.items() if name not in ours]


def across(rows: Sequence[tuple[str, str, str]]) -> tuple[list[str], list[list[str]]] | None:
    """Lay figures of several data sets out as a table: a method a line, a set a column.

    The published numbers of a method are the line below ours. None where there are fewer than two
    sets. ``rows`` are those of `beside`.
    """
    found = {name: (ours, theirs) for name, ours, theirs in rows}
    sets: dict[str, None] = {}
    measures: dict[str, None] = {}
    lines: dict[str, dict[str, tuple[str, str]]] = {}
    for name, (ours, theirs) in found.items():
        mark = ACROSS.fullmatch(name)
        if mark is None:
            continue
        data, method = mark[1], mark[2] or mark[5]
        deviation, _ = found.get(f"{data}: {method}: standard deviation", ("", ""))
        ends, _ = found.get(f"{name}, least and most", ("", ""))
        with_spread = four_digits(ours)
        if deviation:
            with_spread += f"{GAP}±{GAP}{four_digits(deviation)}"
        if ends:
            with_spread += f" ({' to '.join(four_digits(end) for end in ends.split(', '))})"
        sets[data] = None
        lines.setdefault(method, {})[data] = with_spread, theirs
        measures[mark[3] or mark[4]] = None
    if len(sets) < 2:
        return None
    table = []
    for method, cells in lines.items():
        told = [cells.get(data, ("", "")) for data in sets]
        table.append([method, *(ours for ours, _ in told)])
        if any(theirs for _, theirs in told):
            table.append([f"{method}, published", *(theirs for _, theirs in told)])
    return [" and ".join(measures), *sets], table


def four_digits(said: str) -> str:
    """Shorten a number to four digits behind the point; other words stay as they are."""
    try:
        return f"{float(said):.4f}"
    except ValueError:
        return said


def in_short(verdict: str) -> str:
    """The first words of a verdict, up to its first mark."""
    return re.split(r"[,:;.(]", verdict, maxsplit=1)[0].strip()


def results_of(item: Item, folder: Path, ending: str = ".json") -> list[Path]:
    """The files of one item; a name that ends in "-" stands for one file per data set."""
    name = re.escape(item.results) + (r"[\w-]+" if item.results.endswith("-") else "")
    part = r"(-[\w-]+)?" if ending == ".svg" else ""
    pattern = re.compile(name + part + re.escape(ending))
    return sorted(path for path in folder.glob(f"*{ending}") if pattern.fullmatch(path.name))


def shown(value: Any) -> str | None:
    """Write a figure, or None for one that is a whole curve."""
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {shown(one)}" for key, one in value.items())
    if isinstance(value, list):
        return None if len(value) > 3 else ", ".join(str(shown(one)) for one in value)
    return str(value)


def chart_of(path: Path) -> Markup:
    """A chart that a benchmark of this project drew; nobody else's markup gets into the page."""
    text = path.read_text(encoding="utf-8")
    return Markup(re.sub(r"<style>.*?</style>", "", text, count=1, flags=re.DOTALL))
