"""Tables in files, and in memory as Arrow: each as a function of columns to record batches."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from vertikal.errors import InputError

Opened = tuple[Callable[[Sequence[str]], Iterator[Any]], tuple[str, ...]]
"""A function from columns to their batches, and the titles of all columns."""

COMMA_NUMBER = r"^(\s*[+-]?[0-9]*),([0-9]+(?:[eE][+-]?[0-9]+)?\s*)$"
"""A number with a decimal comma."""


@dataclass(frozen=True)
class CsvDialect:
    """The way in which a CSV file is written; its id column is read as it stands."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf8"
    id: str | None = None


USUAL = CsvDialect()


def arrow() -> Any:
    """Import pyarrow; InputError says how to install it where it is missing."""
    try:
        import pyarrow
    except ImportError:
        raise InputError(
            'tables need pyarrow, which is not installed; pip install "vertikal[node]"'
        ) from None
    return pyarrow


@contextmanager
def refusals(party: str, path: Path, *, skips_empty: bool = True) -> Iterator[None]:
    """Turn what Arrow and the system object to into one line, without any cell of the table.

    ``skips_empty`` says that Arrow does not count empty lines of a CSV file as rows.
    """
    pa = arrow()
    try:
        yield
    except OSError as error:
        # The system's own words for the number: Arrow's repeat the whole path.
        why = os.strerror(error.errno) if error.errno else "it is not such a file"
        raise InputError(f"table of {party}: {path.name!r} cannot be read: {why}") from None
    except UnicodeError:
        raise InputError(
            f"table of {party}: {path.name!r} cannot be read: it is not in its encoding"
        ) from None
    except pa.ArrowException as error:
        # "Row #3: Expected 2 columns, got 1: <the row>": the row stays here.
        odd = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
        if odd:
            row, width, got = map(int, odd.groups())
            line = _line_of(path, row) if skips_empty else row
            raise InputError(
                f"table of {party}: {path.name!r}, line {line} must have {width} cells, one for "
                f"each title, got {got}{_other_separator(width)}"
            ) from None
        words = type(error).__name__
        if "invalid UTF8" in str(error):
            words = "invalid UTF8 data; a table in a party file may name its encoding"
        raise InputError(f"table of {party}: {path.name!r} cannot be read: {words}") from None


def _other_separator(width: int) -> str:
    """Say what a file of one column may be that has commas."""
    return "; a separator other than ',' has to be named" if width == 1 else ""


def _line_of(path: Path, row: int) -> int:
    """The line of a CSV file at which its ``row``-th row stands, where empty lines are no rows."""
    with path.open("rb") as file:
        filled = (number for number, line in enumerate(file, 1) if line.strip(b"\r\n"))
        return next(islice(filled, row - 1, None), row)


def csv(party: str, path: Path, height: int, dialect: CsvDialect = USUAL) -> Opened:
    """A CSV file with titles; all cells as text, empty ones and NA, NaN or null as missing.

    An empty line is no row, except in a file of one column: there its cell is missing. Numbers with
    a decimal comma become such with a point, if the dialect says that they are written so.
    """
    pa = arrow()
    from pyarrow import csv as reader

    # With threads errors do not say in which row they are; blocks come one by one anyway.
    reading = reader.ReadOptions(use_threads=False, encoding=dialect.encoding)
    parsing = reader.ParseOptions(newlines_in_values=True, delimiter=dialect.separator)
    with refusals(party, path):
        empty = path.stat().st_size == 0
        titles = [] if empty else reader.open_csv(path, reading, parsing).schema.names
    if not titles:
        raise InputError.of(f"table of {party}", "a CSV file with titles", path.name)
    parsing.ignore_empty_lines = len(titles) > 1

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        options = reader.ConvertOptions(
            column_types={name: pa.string() for name in titles},
            include_columns=list(columns),
            strings_can_be_null=True,
        )
        with refusals(party, path, skips_empty=parsing.ignore_empty_lines):
            for batch in reader.open_csv(path, reading, parsing, options):
                yield batch if dialect.decimal == "." else _with_points(batch, dialect.id)

    return batches, tuple(titles)


def _with_points(batch: Any, ids: str | None) -> Any:
    """Write the numbers of a batch with a decimal point; its ids stay as they are."""
    from pyarrow import compute

    names = batch.schema.names
    columns = [
        column if name == ids else compute.replace_substring_regex(column, COMMA_NUMBER, r"\1.\2")
        for name, column in zip(names, batch.columns, strict=True)
    ]
    return arrow().record_batch(columns, names=names)


def parquet(party: str, path: Path, height: int) -> Opened:
    """A Parquet file."""
    arrow()
    from pyarrow import parquet as reader

    with refusals(party, path):
        titles = reader.read_schema(path).names

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        with refusals(party, path), reader.ParquetFile(path) as file:
            for batch in file.iter_batches(height, columns=list(columns)):
                yield batch.select(list(columns))

    return batches, tuple(titles)


def ipc(party: str, path: Path, height: int) -> Opened:
    """An Arrow (Feather) file."""
    pa = arrow()
    from pyarrow import ipc as reader

    with refusals(party, path), pa.memory_map(str(path)) as file:
        titles = reader.open_file(file).schema.names

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        with refusals(party, path), pa.memory_map(str(path)) as file:
            opened = reader.open_file(file)
            for number in range(opened.num_record_batches):
                yield opened.get_batch(number).select(list(columns))

    return batches, tuple(titles)


def libsvm(party: str, path: Path, height: int) -> Opened:
    """A LIBSVM file: the columns asked for are filled with zeros where the file says nothing."""
    pa = arrow()
    values, labels, queries = _libsvm(party, path)
    rows, width = values.shape
    special = {
        "label": labels,
        "row": np.arange(1, rows + 1),
        **({"qid": queries} if len(queries) else {}),
    }

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        for start in range(0, rows, height):
            part = values[start : start + height]
            arrays = [
                special[name][start : start + height]
                if name in special
                else part[:, [int(name) - 1]].toarray().ravel()
                for name in columns
            ]
            yield pa.record_batch([pa.array(array) for array in arrays], names=list(columns))

    return batches, (*(str(number + 1) for number in range(width)), *special)


def _libsvm(party: str, path: Path) -> tuple[Any, Any, Any]:
    """Values (rows, columns) as CSR, labels, and query numbers if there are any."""
    from sklearn.datasets import load_svmlight_file

    with refusals(party, path):
        try:
            values, labels, queries = load_svmlight_file(str(path), query_id=True, zero_based=False)
        except ValueError:
            raise InputError.of(f"table of {party}", "a LIBSVM file", path.name) from None
    return values, labels, queries


def arrow_object(table: Any) -> Opened:
    """Anything with ``__arrow_c_stream__``, read once: some such objects can be read only once."""
    whole = arrow().table(table)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        yield from whole.select(list(columns)).to_batches()

    return batches, tuple(whole.column_names)


SUFFIXES: dict[str, Callable[[str, Path, int], Opened]] = {
    ".csv": csv,
    ".parquet": parquet,
    ".arrow": ipc,
    ".feather": ipc,
    ".svm": libsvm,
    ".libsvm": libsvm,
}
"""The reader of each kind of file, by the end of its name."""
