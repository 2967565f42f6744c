"""Tables that a query gives: SQLite through Python's own module, PostgreSQL through ADBC.

The query comes from the owner's own party file, never from a job. Connections are opened for
reading only, where the database has such a mode. Addresses may hold passwords, so no message
repeats one.
"""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from vertikal.data.file_formats import Opened, arrow
from vertikal.errors import InputError

ADBC = "adbc_driver_postgresql"


def sqlite(party: str, location: str, query: str, folder: Path, height: int) -> Opened:
    """Open the rows of a query on ``sqlite:FILE``, FILE below ``folder``."""
    path = folder / location.partition(":")[2]
    if not path.is_file():
        raise InputError(f"table of {party}: {path.name!r} cannot be read: no such file")
    address = f"{path.resolve().as_uri()}?mode=ro"

    def rows() -> Iterator[tuple[list[str], list[tuple[Any, ...]]]]:
        """The titles with no rows, then the titles with each run of rows."""
        try:
            with closing(sqlite3.connect(address, uri=True)) as connection:
                cursor = connection.execute(query)
                titles = [item[0] for item in cursor.description or ()]
                yield titles, []
                while some := cursor.fetchmany(height):
                    yield titles, some
        except sqlite3.Error as error:
            raise InputError(f"table of {party}: query on {path.name!r}: {error}") from None

    titles = tuple(next(rows())[0])
    if not titles:
        raise InputError.of(f"table of {party}: query", "one that gives rows (SELECT)", "another")

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        for _, some in rows():
            if some:
                yield _batch(party, titles, columns, some)

    return batches, titles


def postgresql(party: str, location: str, query: str, folder: Path, height: int) -> Opened:
    """Open the rows of a query on ``postgresql://host/name``.

    User and password may also come from libpq's usual places.
    """
    return adbc(party, ADBC, location, query)


def adbc(party: str, driver: str, location: str, query: str) -> Opened:
    """Open the rows of a query through one of ADBC's drivers."""
    arrow()
    try:
        dbapi = importlib.import_module(f"{driver}.dbapi")
    except ImportError:
        raise InputError(
            f"table of {party}: this database needs {driver.replace('_', '-')}, which is not "
            'installed; pip install "vertikal[node]"'
        ) from None

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        try:
            with dbapi.connect(location) as connection, connection.cursor() as cursor:
                cursor.execute(query)
                for batch in cursor.fetch_record_batch():
                    yield batch.select(list(columns))
        except dbapi.Error as error:
            # The driver's words may repeat the address with its password.
            raise InputError(
                f"table of {party}: the database refused the query ({type(error).__name__}); try "
                "it with the database's own client"
            ) from None

    try:
        with dbapi.connect(location) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            titles = tuple(cursor.fetch_record_batch().schema.names)
    except dbapi.Error as error:
        raise InputError(
            f"table of {party}: the query failed ({type(error).__name__}); check "
            "address, user and query with the database's own client"
        ) from None
    return batches, titles


def _batch(
    party: str, titles: tuple[str, ...], columns: Sequence[str], rows: list[tuple[Any, ...]]
) -> Any:
    pa = arrow()
    arrays = []
    for name in columns:
        place = titles.index(name)
        try:
            arrays.append(pa.array([row[place] for row in rows]))
        except pa.ArrowException:
            raise InputError(
                f"table of {party}: column {name!r} must be all numbers or all text, got both; "
                "cast it in the query"
            ) from None
    return pa.record_batch(arrays, names=list(columns))


SCHEMES: dict[str, Callable[[str, str, str, Path, int], Opened]] = {
    "sqlite": sqlite,
    "postgresql": postgresql,
}
"""The function that asks a database, by the beginning of its address."""
