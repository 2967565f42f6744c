"""``vertikal predict``: score many ids with a trained model, into a file."""

from __future__ import annotations

import csv
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from vertikal.cli.terminal.party_option import ask_service, party_option
from vertikal.errors import InputError

_FILE = click.Path(path_type=Path, dir_okay=False)
_BATCH = 10_000


@click.command()
@click.argument("model")
@click.option("--ids", type=_FILE, required=True, help="CSV or Parquet file with a column of ids.")
@click.option("--column", help="Column of ids; the first by default.")
@click.option(
    "-o", "--out", type=_FILE, required=True, help="File for the scores: .parquet or .csv."
)
@click.option(
    "--version", type=click.IntRange(1), help="Version; the newest that is done by default."
)
@click.option(
    "--unknown",
    type=click.Choice(["reject", "degraded"]),
    help="An id that a party lacks: no score, or a flagged one with its columns at their means.",
)
@party_option
def predict(
    model: str,
    ids: Path,
    column: str | None,
    out: Path,
    version: int | None,
    unknown: str | None,
    party: Path | None,
) -> None:
    """Score the ids in a file with MODEL, at its first label party."""
    if out.suffix not in (".parquet", ".csv"):
        raise InputError.of("--out", "a file that ends in .parquet or .csv", out.name)
    if not out.parent.is_dir():
        # Before anything is asked for: rows of the day would be spent for nothing.
        raise InputError.of("--out", "in a folder that exists", out.parent.name)
    from vertikal.node.models.score_reading import flat

    wanted = read_ids(ids, column)
    degraded = None if unknown is None else unknown == "degraded"
    rows: list[dict[str, Any]] = []
    try:
        for start in range(0, len(wanted), _BATCH):
            answer = ask_service(
                party,
                "predict",
                name=model,
                ids=wanted[start : start + _BATCH],
                degraded=degraded,
                version=version,
            )
            rows += map(flat, answer)
    except BaseException:
        # Also of an interruption: the rows of the day that these took are spent.
        if rows:
            write_rows(out, rows)
            click.echo(
                f"the first {len(rows)} of {len(wanted)} ids written to {out.name}, "
                f"{len(wanted) - len(rows)} are missing",
                err=True,
            )
        raise
    write_rows(out, rows)
    count = {status: sum(row["status"] == status for row in rows) for status in _STATUSES}
    told = ", ".join(f"{number} {status}" for status, number in count.items() if number)
    click.echo(f"{len(rows)} ids ({told}) written to {out.name}")


_STATUSES = ("ok", "degraded", "unknown")


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
    fresh = path.with_name(f".{secrets.token_hex(4)}.{path.name}")
    try:
        if path.suffix == ".parquet":
            import pyarrow
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), fresh)
        else:
            with fresh.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, rows[0].keys() if rows else ["id"])
                writer.writeheader()
                writer.writerows(rows)
        fresh.replace(path)
    except OSError as error:
        words = error.strerror or str(error)
        raise InputError(f"--out: {path.name!r} cannot be written: {words}") from None
    finally:
        fresh.unlink(missing_ok=True)
