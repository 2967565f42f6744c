"""Queries on databases: SQLite, ADBC by its SQLite driver, and PostgreSQL where it is installed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from vertikal.data import databases
from vertikal.data.databases import adbc
from vertikal.data.preparation import learn_preparation
from vertikal.data.sources import open_source
from vertikal.errors import InputError


@pytest.fixture
def folder(tmp_path):
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE t (id INTEGER, x, name TEXT)")
        rows = [(number, number / 2, f"n{number % 3}") for number in range(1, 6)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    connection.close()
    return tmp_path


def source_of(folder, query):
    return open_source("bank", "sqlite:t.db", id="id", query=query, folder=folder)


def test_a_query_with_names_of_its_own(folder):
    source = source_of(folder, "SELECT id, x * 2 AS twice FROM t WHERE x > 1 ORDER BY id")
    assert source.columns == ("twice",)
    (block,) = source.blocks(["twice", "id"])
    assert block.to_pydict() == {"twice": [3, 4, 5], "id": [3, 4, 5]}


def test_a_query_that_gives_no_rows(folder):
    source = source_of(folder, "SELECT id, x FROM t WHERE x > 99")
    assert list(source.blocks(["x"])) == []
    with pytest.raises(InputError, match="there are none"):
        source.ids()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT absent FROM t", r"query on 't\.db': no such column"),
        ("DELETE FROM t", "readonly database"),
        ("INSERT INTO t VALUES (9, 9, 'x')", "readonly database"),
        ("-- nothing", "one that gives rows"),
        ("SELECT id FROM t; DROP TABLE t", "one statement at a time"),
    ],
)
def test_queries_that_are_refused(folder, query, said):
    with pytest.raises(InputError, match=said):
        source_of(folder, query)
    with sqlite3.connect(folder / "t.db") as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (5,)
    connection.close()


def test_a_column_of_both_kinds(folder):
    source = source_of(folder, "SELECT id, CASE id WHEN 3 THEN 'x' ELSE x END AS both FROM t")
    with pytest.raises(InputError, match="'both' must be all numbers or all text, got both"):
        list(source.blocks(["both"]))


class TestAdbc:
    """The way to PostgreSQL, walked with the driver for SQLite."""

    DRIVER = "adbc_driver_sqlite"

    def test_columns_and_rows(self, folder):
        batches, titles = adbc(
            "bank", self.DRIVER, f"file:{folder}/t.db", "SELECT id, name FROM t ORDER BY id"
        )
        assert titles == ("id", "name")
        names = [cell for batch in batches(["name"]) for cell in batch.column(0).to_pylist()]
        assert names == ["n1", "n2", "n0", "n1", "n2"]

    def test_a_refused_query_repeats_no_address(self, folder):
        with pytest.raises(InputError, match="the query failed") as caught:
            adbc("bank", self.DRIVER, f"file:{folder}/t.db", "SELECT secret FROM nowhere")
        assert "secret" not in str(caught.value)
        assert str(folder) not in str(caught.value)

    def test_a_table_that_is_gone_when_it_is_read(self, folder):
        batches, _ = adbc("bank", self.DRIVER, f"file:{folder}/t.db", "SELECT id FROM t")
        with sqlite3.connect(folder / "t.db") as connection:
            connection.execute("DROP TABLE t")
        connection.close()
        with pytest.raises(InputError, match="the database refused the query"):
            list(batches(["id"]))

    def test_a_driver_that_is_not_installed(self, monkeypatch):
        monkeypatch.setattr(databases, "ADBC", "adbc_driver_absent")
        with pytest.raises(InputError, match="needs adbc-driver-absent, which is not installed"):
            open_source("bank", "postgresql://u:p@h/d", query="SELECT 1")


def _as_other_user():
    """PostgreSQL does not run as root."""
    return {"user": "postgres"} if os.geteuid() == 0 else {}


@pytest.fixture
def postgres():
    """A server on a socket of its own; it listens on no port."""
    tools = [shutil.which(name) for name in ("initdb", "postgres", "psql")]
    if None in tools:
        pytest.skip("PostgreSQL is not installed here")
    initdb, server, psql = tools
    # Not below pytest's own folder, which only this user may enter.
    with tempfile.TemporaryDirectory(prefix="pg") as name:
        folder = Path(name)
        if _as_other_user():
            shutil.chown(folder, "postgres")
        place = {"cwd": folder, **_as_other_user()}
        make = [initdb, "-D", folder / "data", "-U", "owner", "-A", "trust", "--no-sync"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL, timeout=120, **place)
        process = subprocess.Popen(
            [server, "-D", folder / "data", "-k", folder, "-c", "listen_addresses=", "-F"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **place,
        )
        try:
            ask = [psql, "-h", folder, "-U", "owner", "postgres", "-q", "-c"]
            probe = [*ask, "SELECT 1"]
            _wait_until(
                lambda: not subprocess.run(probe, check=False, capture_output=True).returncode
            )
            rows = "SELECT n AS id, n / 2.0 AS x, 'r' || n % 3 AS region"
            table = f"CREATE TABLE t AS {rows} FROM generate_series(1, 500) n"
            subprocess.run([*ask, table], check=True, timeout=60)
            yield f"postgresql:///postgres?host={folder}&user=owner"
        finally:
            process.terminate()
            process.wait(60)


def _wait_until(ready):
    end = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < end, "the server did not start"
        time.sleep(0.1)


@pytest.mark.slow
def test_a_real_postgresql_server(postgres):
    source = open_source("bank", postgres, id="id", query="SELECT id, x, region FROM t ORDER BY id")
    assert source.columns == ("x", "region")
    assert len(source.ids()) == 500
    preparation, prepared = learn_preparation(source, ["x", "region"])
    assert preparation.titles == ("x", "region = r0", "region = r1", "region = r2")
    assert prepared.table.block(slice(0, 2)).tolist() == [[0.5, 0, 1, 0], [1, 0, 0, 1]]
    assert source.digest(["x"]) == source.digest(["x"])
    with pytest.raises(InputError, match="the query failed") as caught:
        open_source("bank", postgres, query="SELECT absent FROM t")
    assert "host" not in str(caught.value)
