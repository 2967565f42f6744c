"""A stored model in words and as plain values: what it is of, who holds it, how good it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from vertikal.metrics.measures import SMALL_IS_GOOD, TITLES
from vertikal.metrics.wording import in_words, short
from vertikal.node.config.job_file import job_id, setting_text, settings_line
from vertikal.node.models.evaluation import Evaluation
from vertikal.node.models.search_table import SearchTable
from vertikal.node.models.store import Manifest
from vertikal.node.models.training_record import TrainingRecord

_TOLD = ("job", "rows", "held_out", "settings", "columns", "parties", "classes", "positive")
"""Facts that have words of their own."""


def card(
    one: Manifest, evaluation: Evaluation | None = None, search: SearchTable | None = None
) -> dict[str, Any]:
    """Make plain values of all that its owner knows about a model: its card, for JSON."""
    told = {
        "name": one.name,
        "version": one.version,
        "party": one.party,
        "kind": one.kind,
        "created": one.created,
        "library": one.library,
        "digest": one.digest,
        "facts": one.facts,
    }
    if evaluation is not None:
        told["evaluation"] = msgspec.to_builtins(evaluation)
    if search is not None:
        told["search"] = msgspec.to_builtins(search)
    return told


def describe(
    one: Manifest, evaluation: Evaluation | None, search: SearchTable | None = None
) -> list[tuple[str, str]]:
    """Say by title and text what a model is; how good it is stands first."""
    lines = []
    if evaluation is not None:
        lines += [("result", evaluation.first_line), ("measured", evaluation.rows_line)]
    if search is not None:
        lines.append(("chosen", search.first_line))
    lines += [
        ("model", f"{one.name}, version {one.version}"),
        ("party", one.party),
        ("stored", f"{one.created} by vertikal {one.library}"),
        ("digest", one.digest),
    ]
    facts = one.facts
    if "job" in facts:
        lines.append(("job", _job(one)))
    if "algorithm" not in facts:
        lines.append(("kind", one.kind))
    lines += [
        (key.replace("_", " "), setting_text(value))
        for key, value in facts.items()
        if key not in _TOLD
    ]
    if "rows" in facts:
        held = f", {facts['held_out']:,} held out" if "held_out" in facts else ""
        lines.append(("rows", f"{facts['rows']:,}{held}"))
    if "classes" in facts:
        positive = f"; the positive one is {facts['positive']}" if "positive" in facts else ""
        lines.append(("classes", ", ".join(map(str, facts["classes"])) + positive))
    if facts.get("settings"):
        lines.append(("settings", settings_line(facts["settings"])))
    if "columns" in facts:
        lines.append(("columns", ", ".join(facts["columns"]) or "none"))
    for name, part in facts.get("parties", {}).items():
        if name == one.party and "label" in part:
            lines.append(("label", str(part["label"])))
        if name != one.party:
            lines.append(("also at", f"{name}: {_part(part)}"))
    if evaluation is not None:
        lines += _measures(evaluation)
    if search is not None:
        title = TITLES[search.measure]
        for number, words, rows, value in search.rows():
            lines.append(("try", f"round {number}, {words}: {title} {value}, {rows} rows"))
    return lines


def _job(one: Manifest) -> str:
    """Name the job by its digest and, if it ran between services, by its id."""
    digest = str(one.facts["job"])
    return f"{job_id(one.name, digest)}, digest {digest}" if "attempt" in one.facts else digest


def _part(part: Mapping[str, Any]) -> str:
    """Say what another party brings, as far as the job says it."""
    if "table" not in part:
        return "no table"
    columns = ", ".join(part["columns"]) if "columns" in part else "all columns that it offers"
    label = f", {part['label']} as the label" if "label" in part else ""
    return f"{columns} of {part['table']}{label}"


def _measures(evaluation: Evaluation) -> list[tuple[str, str]]:
    together, alone, straight = evaluation.together, evaluation.alone, evaluation.linear
    lines = []
    for name in together.numbers:
        words = f"{in_words(together, name)}, alone {short(alone.numbers[name].value)}"
        if straight is not None and name in straight.numbers:
            words += f", linear {short(straight.numbers[name].value)}"
        lines.append((TITLES[name], words))
    if len(together.classes) > 1:
        for name, one in together.classes.items():
            auc, f1 = (short(one.numbers[key].value) for key in ("auc", "f1"))
            lines.append(
                ("class", f"{name} against the others: AUC {auc}, F1 {f1}, {one.rows:,} rows")
            )
    for name, loss in evaluation.contributions.items():
        lines.append(("adds", f"{name}: {short(loss)} of {TITLES[together.main]}"))
    return lines


def compare(
    first: tuple[Manifest, Evaluation | None], second: tuple[Manifest, Evaluation | None]
) -> list[tuple[str, str, str, str]]:
    """Compare two models measure by measure, then setting by setting where they differ.

    Rows are (title, first, second, the better one); which is better is "open" where the two
    intervals overlap. Models of different labels or classes are not better or worse than each
    other: their first row says what each predicts, and none is named.
    """
    rows = []
    one, other = first[1], second[1]
    predicted = [_predicts(manifest.facts) for manifest, _ in (first, second)]
    alike = predicted[0] == predicted[1]
    if not alike:
        rows.append(("predicts", predicted[0], predicted[1], "not comparable"))
    if one is not None and other is not None:
        for name in one.together.numbers:
            if name in other.together.numbers:
                mine, yours = (in_words(each.together, name) for each in (one, other))
                better = _better(one, other, name) if alike else ""
                rows.append((TITLES[name], mine, yours, better))
        rows.append(("measured on", _measured_on(one), _measured_on(other), ""))
    known = [_flat(manifest.facts) for manifest, _ in (first, second)]
    for key in dict.fromkeys([*known[0], *known[1]]):
        mine, yours = (setting_text(facts.get(key, "")) for facts in known)
        if mine != yours and key not in ("job", "attempt"):
            rows.append((key, mine, yours, ""))
    return rows


def _predicts(facts: Mapping[str, Any]) -> str:
    """Say what a model predicts: its labels, and their classes."""
    labels = [str(part["label"]) for part in facts.get("parties", {}).values() if "label" in part]
    classes = f": {', '.join(sorted(map(str, facts['classes'])))}" if "classes" in facts else ""
    return f"{', '.join(labels)}{classes}"


def _measured_on(evaluation: Evaluation) -> str:
    return f"{evaluation.together.rows:,} rows, {evaluation.way}"


def _better(one: Evaluation, other: Evaluation, name: str) -> str:
    """Name the better of two; nobody if the intervals leave it open."""
    mine, yours = one.together.numbers[name], other.together.numbers[name]
    if None in (*mine, *yours):
        return ""
    if mine.low > yours.high:  # type: ignore[operator]
        return "second" if name in SMALL_IS_GOOD else "first"
    if yours.low > mine.high:  # type: ignore[operator]
        return "first" if name in SMALL_IS_GOOD else "second"
    return "open"


def _flat(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Write facts without a table in them, settings one by one."""
    found = {key: value for key, value in facts.items() if key not in ("settings", "parties")}
    found |= {f"settings.{key}": value for key, value in facts.get("settings", {}).items()}
    for name, part in facts.get("parties", {}).items():
        found[f"parties.{name}"] = _part(part)
    return found


def what_left(record: TrainingRecord | None) -> list[tuple[str, str, str, int, str]]:
    """List what left the party in training: (to, what, form, bytes, what its receiver learns)."""
    return [
        (
            entry.receiver,
            entry.disclosure.what,
            "masked" if entry.disclosure.masked else "open",
            entry.bytes,
            entry.disclosure.learns,
        )
        for entry in (record.ledger if record else ())
    ]
