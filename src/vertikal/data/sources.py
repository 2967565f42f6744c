"""Sources of a party's table, with one interface: files, databases, anything that speaks Arrow.

A `Source` hands out an id column and named columns in blocks (Arrow record batches), as often as it
is asked, so that training has a table in memory as a whole only once it is numbers. What it reads:

    accounts.csv, accounts.parquet, accounts.arrow or .feather
    a9a.svm or .libsvm       columns "1", "2", …, and "label"; ids are "row" (line numbers) or "qid"
    sqlite:accounts.db       with a query
    postgresql://host/name   with a query, through ADBC
    any object with ``__arrow_c_stream__``: pandas, polars, DuckDB, pyarrow

Cells of a CSV file are kept as text here: whether a column is of numbers is decided over all of its
rows (`preparation`), not by the first few.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vertikal.data import databases, file_formats
from vertikal.data.content_digest import ContentDigest
from vertikal.data.file_formats import CsvDialect
from vertikal.data.ids import Ids, normalise
from vertikal.data.row_filter.evaluation import kept_rows
from vertikal.data.row_filter.grammar import Condition, columns_of, parse_filter
from vertikal.errors import InputError

HEIGHT = 1 << 16
"""Rows of a block."""

Batches = Callable[[Sequence[str]], Iterator[Any]]
"""Record batches with these columns, from the first row on, at each call."""


@dataclass(frozen=True)
class Source:
    """A party's table, wherever it lies."""

    party: str
    title: str  # how messages speak of it; never a password or a path
    id: str | None
    columns: tuple[str, ...]  # without the ids
    _batches: Batches

    def blocks(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read the named columns, in record batches of at most `HEIGHT` rows."""
        known = {*self.columns, self.id}
        strange = [name for name in columns if name not in known]
        if strange:
            raise InputError.of(
                f"table of {self.party}: columns", f"some of {list(self.columns)}", strange[0]
            )
        for batch in self._batches(columns):
            for start in range(0, batch.num_rows, HEIGHT):
                yield batch.slice(start, HEIGHT)

    def ids(self) -> Ids:
        """Read the ids of all rows in their written form; InputError counts those without one."""
        if self.id is None:
            raise InputError(
                f"table of {self.party}: {self.title} has no id column; name it to align rows"
            )
        cells = [cell for batch in self.blocks([self.id]) for cell in batch.column(0).to_pylist()]
        return normalise(self.party, cells)

    def digest(self, columns: Sequence[str], ids: list[Any] | None = None) -> str:
        """Compute the SHA-256 of the ids and these columns, by name, in the order of the rows.

        It is the same however the rows are cut into blocks, and another as soon as a cell, a name
        or the order differs. The cells of the ids are added to ``ids``. They come from the same
        reading, so that they belong to this digest even if the table changes.
        """
        wanted = [*([self.id] if self.id else []), *columns]
        content = ContentDigest(wanted)
        for batch in self.blocks(wanted):
            content.update(batch)
            if ids is not None and self.id:
                ids += batch.column(0).to_pylist()
        return content.hexdigest()

    def row_digests(self, columns: Sequence[str]) -> list[bytes]:
        """Compute a digest of these cells of each row, to tell later which rows have changed."""
        found = []
        for batch in self.blocks(columns):
            for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                found.append(hashlib.blake2b(repr(cells).encode(), digest_size=16).digest())
        return found


def open_source(
    party: str,
    location: Any,
    *,
    id: str | None = None,
    query: str | None = None,
    folder: Path = Path(),
    dialect: CsvDialect | None = None,
    rows: str | None = None,
) -> Source:
    """Open the table at ``location``: a file in ``folder``, a database with a query, an object.

    ``dialect`` says how a CSV file is written, if it is not with commas, points and UTF-8.
    ``rows`` is a filter: the table then has only the rows for which it is true.
    """
    # Whole, so that workers of the party find the file from wherever they run.
    folder = folder.absolute()
    if isinstance(location, str | Path):
        title, batches, columns = _named(party, str(location), id, query, folder, dialect)
    elif hasattr(location, "__arrow_c_stream__"):
        title = type(location).__name__
        batches, columns = file_formats.arrow_object(location)
    else:
        raise InputError.of(
            f"table of {party}", "a file, a database or an Arrow object", type(location).__name__
        )
    if len(set(columns)) != len(columns):
        raise InputError.of(f"table of {party}", "of columns with distinct titles", title)
    if id is not None and id not in columns:
        hint = _separator_hint(columns)
        raise InputError.of(
            f"table of {party}: id", f"one of the columns {list(columns)}{hint}", id
        )
    if rows is not None:
        batches = _filtered(party, parse_filter(rows), batches, columns)
    return Source(party, title, id, tuple(name for name in columns if name != id), batches)


def _filtered(
    party: str, condition: Condition, batches: Batches, columns: Sequence[str]
) -> Batches:
    """Leave out the rows for which a condition is not true."""
    needed = columns_of(condition)
    strange = [name for name in needed if name not in columns]
    if strange:
        raise InputError.of(
            f"table of {party}: rows", f"about the columns {list(columns)}", strange[0]
        )

    def some(wanted: Sequence[str]) -> Iterator[Any]:
        pa = file_formats.arrow()
        for batch in batches([*wanted, *(name for name in needed if name not in wanted)]):
            kept = pa.array(kept_rows(party, condition, batch))
            yield batch.select(list(wanted)).filter(kept)

    return some


def _separator_hint(columns: Sequence[str]) -> str:
    """Say which separator a file seems to have that was read as one column."""
    if len(columns) != 1:
        return ""
    found = [one for one in (";", "\t", "|") if one in columns[0]]
    return f" (all in one: set separator = {json.dumps(found[0])}?)" if found else ""


def _named(
    party: str,
    location: str,
    id: str | None,
    query: str | None,
    folder: Path,
    dialect: CsvDialect | None,
) -> tuple[str, Batches, tuple[str, ...]]:
    scheme = location.partition(":")[0]
    if scheme in databases.SCHEMES:
        if query is None:
            raise InputError(f"table of {party}: a database needs a query, got none")
        return scheme, *databases.SCHEMES[scheme](party, location, query, folder, HEIGHT)
    if query is not None:
        raise InputError.of(
            f"table of {party}: query", f"for a database {list(databases.SCHEMES)}", "a file"
        )
    path = folder / location
    suffix = path.suffix.lower()
    if suffix not in file_formats.SUFFIXES:
        raise InputError.of(
            f"table of {party}", f"a file that ends in {list(file_formats.SUFFIXES)}", path.name
        )
    if dialect is None:
        return repr(path.name), *file_formats.SUFFIXES[suffix](party, path, HEIGHT)
    if suffix != ".csv":
        raise InputError.of(
            f"table of {party}: separator, decimal and encoding", "for a CSV file", path.name
        )
    return repr(path.name), *file_formats.csv(party, path, HEIGHT, replace(dialect, id=id))
