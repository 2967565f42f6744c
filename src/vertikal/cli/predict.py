"""``vertikal predict``: score many ids, or a whole table, with a trained model, into a file."""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from vertikal.cli.terminal.output import json_option, print_json
from vertikal.cli.terminal.party_option import ask_service, party_file, party_option, store_of
from vertikal.errors import InputError

_FILE = click.Path(path_type=Path, dir_okay=False)
BATCH = 10_000
"""Ids of one request."""


@click.command()
@click.argument("model")
@click.option("--ids", type=_FILE, help="CSV or Parquet file with a column of ids.")
@click.option("--column", help="Column of ids in that file; the first by default.")
@click.option(
    "--table", help="Table of the party file whose people are scored, as many as the others allow."
)
@click.option(
    "-o", "--out", type=_FILE, required=True, help="File for the scores: .parquet or .csv."
)
@click.option(
    "--version",
    type=click.IntRange(1),
    help="Version; the newest that is done and not kept back by default.",
)
@click.option(
    "--unknown",
    type=click.Choice(["reject", "degraded"]),
    help="An id that a party lacks: no score, or a flagged one with its columns at their means.",
)
@click.option(
    "--resume", is_flag=True, help="Keep the scores that the file has, and ask for the rest."
)
@json_option
@party_option
def predict(
    model: str,
    ids: Path | None,
    column: str | None,
    table: str | None,
    out: Path,
    version: int | None,
    unknown: str | None,
    resume: bool,
    as_json: bool,
    party: Path | None,
) -> None:
    """Score the ids in a file, or the people of a table, with MODEL.

    This is for the first label party of its job. People of a table for scoring need not have been
    in training. Of a table as many are scored as the limits of all parties allow; the others are
    in the file as refused, and --resume asks for them another day.
    """
    if (ids is None) == (table is None) or (column is not None and ids is None):
        raise click.UsageError("give --ids FILE (and --column), or --table NAME")
    if out.suffix not in (".parquet", ".csv"):
        raise InputError.of("--out", "a file that ends in .parquet or .csv", out.name)
    if not out.parent.is_dir():
        # Before anything is asked for: rows of the day would be spent for nothing.
        raise InputError.of("--out", "in a folder that exists", out.parent.name)
    from vertikal.node.models.score_reading import flat

    if ids is not None:
        wanted = read_ids(ids, column)
    else:
        wanted = ids_of_table(party, str(table), model, version)
    kept = read_scores(out) if resume and out.exists() else {}
    asking = [one for one in wanted if one not in kept]
    degraded = None if unknown is None else unknown == "degraded"
    ask = partial(ask_service, party, name=model, degraded=degraded, version=version)
    rows: list[dict[str, Any]] = []
    reason = ""
    try:
        for start in range(0, len(asking), BATCH):
            some = asking[start : start + BATCH]
            if table is None:
                rows += map(flat, ask("predict", ids=some))
                continue
            answer = ask("score", ids=some)
            rows += map(flat, answer["scores"])
            reason = answer["reason"] or reason
            if answer["used_up"]:
                break
    except BaseException:
        # Also of an interruption: the rows of the day that these took are spent.
        if rows or kept:
            _write(out, wanted, kept, rows)
            scored = len(wanted) - len(asking) + len(rows)
            click.echo(
                f"{'' if kept else 'the first '}{scored} of {len(wanted)} ids written to "
                f"{out.name}, {len(wanted) - scored} are missing",
                err=True,
            )
        raise
    rows += [{"id": one, "status": _REFUSED} for one in asking[len(rows) :]]
    count = Counter(row["status"] for row in _write(out, wanted, kept, rows))
    if as_json:
        print_json({"out": out.name, "ids": len(wanted), "statuses": count, "reason": reason})
        return
    told = ", ".join(f"{count[status]} {status}" for status in _STATUSES if count[status])
    click.echo(f"{len(wanted)} ids ({told}) written to {out.name}")
    if reason:
        click.echo(f"refused: {reason}", err=True)


_REFUSED = "refused"
_STATUSES = ("ok", "degraded", "unknown", _REFUSED)


def _write(
    out: Path, wanted: list[str], kept: dict[str, dict[str, Any]], rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Write the scores that were kept and those that came, in the order of the ids asked for."""
    fresh = iter(rows)
    told = (kept[one] if one in kept else next(fresh, None) for one in wanted)
    merged = [row for row in told if row is not None]
    write_rows(out, merged)
    return merged


def ids_of_table(party: Path | None, table: str, model: str, version: int | None) -> list[str]:
    """Read the ids of a table that this party offers, if the model may score its people."""
    from vertikal.node.approval.offers import OwnTables
    from vertikal.node.models.store import ModelStore

    own = OwnTables.of(party_file(party))
    facts = ModelStore(store_of(party) / "models").show(model, version).facts
    trained_on = own.trained_on(facts)
    scored = own.file.tables_to_score(trained_on)
    if table not in scored:
        raise InputError.of(
            "--table",
            f"one that model {model!r} may score, of {list(scored)}; a table for scoring says "
            f'scores_for = ["{trained_on}"]',
            table,
        )
    return [one.decode() for one in own.open(table).ids().values]


def read_scores(path: Path) -> dict[str, dict[str, Any]]:
    """Read the scores of an earlier file, by id; those that were refused are left out."""
    from vertikal.data.sources import open_source

    source = open_source("scores", path)
    if not {"id", "status"} <= set(source.columns):
        raise InputError.of("--resume", "with a file of scores", path.name)
    rows = [row for block in source.blocks(source.columns) for row in block.to_pylist()]
    return {str(row["id"]): row for row in rows if row["status"] in ("ok", "degraded")}


def read_ids(path: Path, column: str | None) -> list[str]:
    """Read the ids in one column of a file, in their written form; an id may stand there twice."""
    from vertikal.data.ids import write_ids
    from vertikal.data.sources import open_source

    source = open_source("ids", path)
    if column is not None and column not in source.columns:
        raise InputError.of("--column", f"one of {list(source.columns)}", column)
    blocks = source.blocks([column or source.columns[0]])
    values, report = write_ids([cell for block in blocks for cell in block.column(0).to_pylist()])
    problems = replace(report, repeated=0).problems()
    if problems:
        raise InputError(
            f"--ids: of the {report.rows} ids in {path.name!r}, {'; '.join(problems)}; they must "
            "be all text or all whole numbers"
        )
    return [value.decode() for value in values]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write scores to a file, one line per id; a failure leaves the file that was there."""
    from vertikal.node.models.score_reading import scores_csv, titles_of

    fresh = path.with_name(f".{secrets.token_hex(4)}.{path.name}")
    try:
        if path.suffix == ".parquet":
            import pyarrow
            import pyarrow.parquet

            titles = titles_of(rows)
            whole = [{title: row.get(title) for title in titles} for row in rows]
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(whole), fresh)
        else:
            fresh.write_text(scores_csv(rows), encoding="utf-8", newline="")
        fresh.replace(path)
    except OSError as error:
        words = error.strerror or str(error)
        raise InputError(f"--out: {path.name!r} cannot be written: {words}") from None
    finally:
        fresh.unlink(missing_ok=True)
