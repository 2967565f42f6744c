"""Models: versions, one model with its evaluation, two compared, scores, and deleting."""

from __future__ import annotations

import csv
import io
from typing import Any

import msgspec

from vertikal.console.page import PageAnswer, PageRequest
from vertikal.errors import InputError, RequestRefused
from vertikal.node.models.model_card import card, compare, what_left
from vertikal.node.models.model_page import model_content, model_page
from vertikal.node.models.score_reading import flat, scores_csv, titles_of
from vertikal.node.models.store import Details, Manifest
from vertikal.node.storage.drift_notes import DriftNotes

MOST_IDS = 10_000
"""Ids of one form; `vertikal predict` scores more."""
_SHOWN = 200
"""Scores that a page shows; the file has all."""


def model_list(asked: PageRequest) -> PageAnswer:
    damaged: list[str] = []
    found = asked.view.connection.models.versions(damaged)
    return asked.page(
        "models.html",
        menu="models",
        title="Models",
        models=[_line(one) for one in reversed(found)],
        damaged=damaged,
    )


def model(asked: PageRequest) -> PageAnswer:
    found = _details(asked)
    one = found.manifest
    drift = [
        f"{table}, column {each.column}: {each.words} (seen {note.when})"
        for table, note in DriftNotes(asked.view.connection.store).read(one.digest).items()
        for each in note.found
    ]
    return asked.page(
        "console_model.html",
        menu="models",
        title=f"{one.name}, version {one.version}",
        model=one,
        subtitle=found.evaluation.first_line if found.evaluation else f"the shard of {one.party}",
        shards=_shards(one),
        drift=drift,
        may_score=_has_labels(one),
        most_ids=MOST_IDS,
        **model_content(*found),
    )


def report(asked: PageRequest) -> PageAnswer:
    """The page of `vertikal model report`, to keep."""
    found = _details(asked)
    return PageAnswer.file(model_page(*found), f"{_file_name(found.manifest)}.html", "text/html")


def model_card(asked: PageRequest) -> PageAnswer:
    """All that `vertikal model report --json` tells, to keep."""
    found = _details(asked)
    titles = ("to", "what", "form", "bytes", "learns")
    left = [dict(zip(titles, row, strict=True)) for row in what_left(found.record)]
    told = {**card(found.manifest, found.evaluation, found.search), "left": left}
    name = f"{_file_name(found.manifest)}.json"
    return PageAnswer.file(msgspec.json.encode(told), name, "application/json")


def compared(asked: PageRequest) -> PageAnswer:
    """Two versions beside each other, as `vertikal model compare` has them."""
    names = [asked.query.get(key, "") for key in ("first", "second")]
    found = [_named(asked, name) for name in names]
    pairs = [(one.manifest, one.evaluation) for one in found]
    return asked.page(
        "compared.html",
        menu="models",
        title="Two models compared",
        names=[f"{one.name}, version {one.version}" for one, _ in pairs],
        rows=compare(*pairs),
        not_evaluated=any(evaluation is None for _, evaluation in pairs),
    )


def confirm_delete(asked: PageRequest) -> PageAnswer:
    _must_decide(asked)
    one = _details(asked).manifest
    return asked.page(
        "delete_model.html",
        menu="models",
        title=f"Delete {one.name}, version {one.version}?",
        model=one,
    )


def delete(asked: PageRequest) -> PageAnswer:
    """Delete this party's shard of one version."""
    _must_decide(asked)
    one = _details(asked).manifest
    if asked.form.get("digest", "") != one.digest:
        raise RequestRefused(400, "the digest on the form is not that of this model")
    asked.view.connection.models.delete(one.name, one.version)
    return PageAnswer.to("/models")


def score(asked: PageRequest) -> PageAnswer:
    """Score the ids of a form, or of a file; the limits of all parties count as ever."""
    _must_decide(asked)
    name, version = asked.path["name"], asked.number("version")
    ids = _ids(asked)
    answer = asked.view.change("predict", name=name, ids=ids, version=version)
    kept = asked.results.keep(asked.session, [flat(one) for one in answer])
    return PageAnswer.to(f"/models/{name}/{version}/scores/{kept}")


def scores(asked: PageRequest) -> PageAnswer:
    rows = _kept(asked)
    titles = titles_of(rows)
    return asked.page(
        "scores.html",
        menu="models",
        title="Scores",
        name=asked.path["name"],
        version=asked.number("version"),
        kept=asked.path["kept"],
        titles=titles,
        rows=[[_cell(row.get(title)) for title in titles] for row in rows[:_SHOWN]],
        count=len(rows),
        more=max(0, len(rows) - _SHOWN),
    )


def scores_file(asked: PageRequest) -> PageAnswer:
    return PageAnswer.file(scores_csv(_kept(asked)), "scores.csv", "text/csv")


def _kept(asked: PageRequest) -> list[dict[str, Any]]:
    rows = asked.results.find(asked.session, asked.path["kept"])
    if rows is None:
        raise RequestRefused(404, "these scores are not kept any more; ask for them again")
    return rows


def _ids(asked: PageRequest) -> list[str]:
    """Read the ids of a form: one a line, and the first column of a CSV file with titles."""
    typed = [line.strip() for line in asked.form.get("ids", "").splitlines()]
    table = list(csv.reader(io.StringIO(asked.form.get("file", ""))))
    found = [one for one in typed if one] + [row[0].strip() for row in table[1:] if row]
    if not found:
        raise RequestRefused(400, "give an id in each line, or a CSV file with a title line")
    if len(found) > MOST_IDS:
        raise RequestRefused(
            400, f"a form takes {MOST_IDS:,} ids at most; `vertikal predict` takes more"
        )
    return found


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "–" if value is None else str(value)


def _must_decide(asked: PageRequest) -> None:
    if not asked.session.may_decide:
        raise RequestRefused(403, "this link is for looking only")


def _details(asked: PageRequest) -> Details:
    return _found(asked, asked.path["name"], asked.number("version"))


def _named(asked: PageRequest, text: str) -> Details:
    """Find the model NAME:VERSION of a form."""
    name, _, number = text.rpartition(":")
    if not name or not number.isascii() or not number.isdigit():
        raise RequestRefused(400, "choose two models to compare")
    return _found(asked, name, int(number))


def _found(asked: PageRequest, name: str, version: int) -> Details:
    store = asked.view.connection.models
    try:
        store.find(name, version)
    except InputError as error:
        raise RequestRefused(404, str(error)) from None
    return store.details(name, version)


def _line(one: Manifest) -> dict[str, Any]:
    return {
        "name": one.name,
        "version": one.version,
        "stored": one.created[:19].replace("T", " "),
        "algorithm": str(one.facts.get("algorithm", one.kind)),
        "rows": f"{one.facts['rows']:,}" if "rows" in one.facts else "–",
        "digest": one.digest,
    }


def _shards(one: Manifest) -> list[tuple[str, str, str]]:
    """Say which parties hold shards, and of which columns as far as the job says it."""
    return [
        (
            name,
            str(part.get("table", "no table")),
            ", ".join(part["columns"]) if "columns" in part else "all that it offers",
        )
        for name, part in one.facts.get("parties", {}).items()
    ]


def _has_labels(one: Manifest) -> bool:
    return "label" in one.facts.get("parties", {}).get(one.party, {})


def _file_name(one: Manifest) -> str:
    return f"{one.name}-{one.version}"
