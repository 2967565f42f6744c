"""``vertikal predict``: scores of many ids by a trained model, into a file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import click

from vertikal.cli.here import ask_service, party_option
from vertikal.errors import InputError

_FILE = click.Path(path_type=Path, dir_okay=False)
_BATCH = 10_000


@click.command()
@click.argument("model")
@click.option("--ids", type=_FILE, required=True, help="CSV or Parquet with a column of ids.")
@click.option("--column", help="Which column; the first by default.")
@click.option("-o", "--out", type=_FILE, required=True, help="Scores: .parquet or .csv.")
@click.option("--version", type=int, help="Version of the model; the newest by default.")
@click.option(
    "--unknown",
    type=click.Choice(["reject", "degraded"]),
    help="For an id that a party lacks: no score, or one with its block at its mean, flagged.",
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
    """Score the ids in a file with MODEL; run at its first label party."""
    if out.suffix not in (".parquet", ".csv"):
        raise InputError.of("--out", "a file that ends in .parquet or .csv", out.name)
    wanted = read_ids(ids, column)
    degraded = None if unknown is None else unknown == "degraded"
    rows: list[dict[str, Any]] = []
    for start in range(0, len(wanted), _BATCH):
        rows += ask_service(
            party,
            "predict",
            name=model,
            ids=wanted[start : start + _BATCH],
            degraded=degraded,
            version=version,
        )
    write_rows(out, rows)
    count = {status: sum(row["status"] == status for row in rows) for status in _STATUSES}
    told = ", ".join(f"{number} {status}" for status, number in count.items() if number)
    click.echo(f"{len(rows)} ids ({told}) written to {out.name}")


_STATUSES = ("ok", "degraded", "unknown")


def read_ids(path: Path, column: str | None) -> list[str]:
    """The ids in one column of a file, as they are written there."""
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet

            table = pyarrow.parquet.read_table(path)
            titles = table.column_names
            found = table.column(_title(titles, column)).to_pylist()
            return [str(one) for one in found]
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file)
            titles = next(lines, [])
            place = titles.index(_title(titles, column))
            return [row[place] for row in lines if row]
    except (OSError, UnicodeDecodeError, IndexError) as error:
        raise InputError(f"--ids: {path.name!r} cannot be read: {error}") from None


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Scores as a file, one line per id."""
    try:
        if path.suffix == ".parquet":
            import pyarrow
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
            return
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys() if rows else ["id"])
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise InputError(f"--out: {path.name!r} cannot be written: {error.strerror}") from None


def _title(titles: list[str], column: str | None) -> str:
    if not titles or (column is not None and column not in titles):
        raise InputError.of("--column", f"one of {titles}", column)
    return column or titles[0]
