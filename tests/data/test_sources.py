"""Tables from every kind of source: the same cells, ids and refusals whatever it is."""

from __future__ import annotations

import sqlite3
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from vertikal.data import sources
from vertikal.data.file_formats import CsvDialect
from vertikal.data.sources import Source, open_source
from vertikal.errors import InputError

FRAME = pd.DataFrame(
    {
        "id": [f"p{number}" for number in range(300)],
        "age": np.arange(300) % 60 + 20,
        "income": np.arange(300) * 1.5,
        "region": [("north", "south", "mid west")[number % 3] for number in range(300)],
    }
)
COLUMNS = ["income", "region", "age"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    FRAME.to_csv(folder / "t.csv", index=False)
    parquet.write_table(pa.table(FRAME), folder / "t.parquet", row_group_size=70)
    feather.write_feather(pa.table(FRAME), folder / "t.feather", chunksize=90)
    feather.write_feather(pa.table(FRAME), folder / "t.arrow")
    with sqlite3.connect(folder / "t.db") as connection:
        FRAME.to_sql("people", connection, index=False)
    connection.close()
    return folder


KINDS = {
    "csv": ("t.csv", None),
    "parquet": ("t.parquet", None),
    "feather": ("t.feather", None),
    "arrow": ("t.arrow", None),
    "sqlite": ("sqlite:t.db", "SELECT * FROM people ORDER BY rowid"),
    "pandas": (FRAME, None),
    "polars": (pl.from_pandas(FRAME), None),
    "pyarrow": (pa.table(FRAME), None),
    "reader": (lambda: pa.table(FRAME).to_reader(), None),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def opened(kind, folder, **options):
    location, query = KINDS[kind]
    if callable(location):
        location = location()
    return open_source("bank", location, folder=folder, query=query, **{"id": "id", **options})


def cells_of(source, columns):
    return {
        name: [
            cell if name == "region" else float(cell)
            for batch in source.blocks(columns)
            for cell in batch.column(name).to_pylist()
        ]
        for name in columns
    }


def read(location, **options):
    """All of column x."""
    return list(open_source("bank", location, **options).blocks(["x"]))


@every_kind
def test_cells_and_ids_are_the_same_from_everywhere(kind, folder):
    source = opened(kind, folder)
    assert source.columns == ("age", "income", "region")
    assert cells_of(source, COLUMNS) == {name: FRAME[name].tolist() for name in COLUMNS}
    # And again: a source can be read as often as it is asked.
    assert source.ids().values == tuple(one.encode() for one in FRAME["id"])
    assert source.ids().report.rows == 300


@every_kind
def test_blocks_are_bounded(kind, folder, monkeypatch):
    monkeypatch.setattr(sources, "HEIGHT", 64)
    blocks = list(opened(kind, folder).blocks(COLUMNS))
    assert sum(block.num_rows for block in blocks) == 300
    assert all(0 < block.num_rows <= 64 for block in blocks)
    assert all(block.schema.names == COLUMNS for block in blocks)


@every_kind
def test_the_digest_does_not_depend_on_blocks(kind, folder, monkeypatch):
    whole = opened(kind, folder).digest(COLUMNS)
    monkeypatch.setattr(sources, "HEIGHT", 37)
    assert opened(kind, folder).digest(COLUMNS) == whole
    assert opened(kind, folder, id=None).digest(COLUMNS) != whole
    assert opened(kind, folder).digest(COLUMNS[:2]) != whole


def test_the_digest_is_of_cells_names_and_order():
    def digest(frame, columns=COLUMNS):
        return open_source("bank", frame, id="id").digest(columns)

    first = digest(FRAME)
    assert digest(FRAME.copy()) == first
    changed = [FRAME.copy() for _ in range(4)]
    changed[0].loc[299, "income"] += 1e-9
    changed[1].loc[7, "region"] = "North"
    changed[2].loc[0, "id"] = "p00"
    changed[3].loc[5, "region"] = None
    moved = FRAME.iloc[::-1]
    renamed = FRAME.rename(columns={"age": "income", "income": "age"})
    for other in (*changed, moved, renamed, FRAME.iloc[:-1], FRAME.astype({"age": float})):
        assert digest(other) != first
    # Text cut at other places is other text.
    joined, cut = FRAME.head(2).copy(), FRAME.head(2).copy()
    joined["region"], cut["region"] = ["ab", "c"], ["a", "bc"]
    assert digest(joined) != digest(cut)


def test_large_whole_numbers_and_nan_in_digests():
    def digest(*cells, kind=None):
        return open_source("bank", pa.table({"x": pa.array(cells, kind)})).digest(["x"])

    assert digest(2**53) != digest(2**53 + 1)
    odd = np.frombuffer(np.uint64(0x7FF8000000000001).tobytes(), np.float64)[0]
    assert digest(float("nan")) == digest(odd)
    assert digest(float("nan")) != digest(None, kind=pa.float64())
    days = [digest(day, kind=pa.date32()) for day in (1, 2)]
    assert days[0] != days[1]
    assert digest(None) != digest()
    encoded = pa.array(["a", "b"]).dictionary_encode()
    assert open_source("bank", pa.table({"x": encoded})).digest(["x"]) == digest("a", "b")


def test_the_ids_are_those_of_the_digest():
    """They come from one reading: a table that changes between two cannot pair them wrongly."""
    readings = []

    def batches(columns):
        readings.append(columns)
        cells = [f"{len(readings)}-{row}" for row in range(3)]
        return iter([pa.record_batch([pa.array(cells)] * len(columns), list(columns))])

    source = Source("bank", "table", "id", ("x",), batches)
    ids = []
    source.digest(["x"], ids)
    assert (ids, readings) == (["1-0", "1-1", "1-2"], [["id", "x"]])


def test_an_empty_line_is_a_row_only_where_there_is_one_column(tmp_path):
    (tmp_path / "t.csv").write_text("x\n1\n\n2\n")
    (block,) = read("t.csv", folder=tmp_path)
    assert block.column(0).to_pylist() == ["1", None, "2"]
    (tmp_path / "t.csv").write_text("y,x\n1,1\n\n2,2\n\n")
    (block,) = read("t.csv", folder=tmp_path)
    assert block.column(0).to_pylist() == ["1", "2"]


def test_a_libsvm_file(tmp_path):
    (tmp_path / "t.svm").write_text("1 qid:7 1:0.5 3:2\r\n-1 qid:9 2:1 \n")
    source = open_source("bank", "t.svm", id="row", folder=tmp_path)
    assert source.columns == ("1", "2", "3", "label", "qid")
    (block,) = source.blocks(["3", "label", "1"])
    assert block.to_pydict() == {"3": [2, 0], "label": [1, -1], "1": [0.5, 0]}
    assert source.ids().values == (b"1", b"2")
    by_query = open_source("bank", "t.svm", id="qid", folder=tmp_path)
    assert by_query.ids().values == (b"7", b"9")
    (tmp_path / "plain.libsvm").write_text("1 1:0.5\n")
    assert open_source("bank", "plain.libsvm", folder=tmp_path).columns == ("1", "label", "row")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("gone.csv", None, r"table of bank: 'gone\.csv' cannot be read: No such file"),
        ("gone.parquet", None, "cannot be read: No such file"),
        ("gone.arrow", None, "cannot be read: No such file"),
        ("gone.svm", None, "cannot be read"),
        ("t.csv", b"", "a CSV file with titles"),
        ("t.csv", b"id,id\n1,2\n", "of columns with distinct titles"),
        (
            "t.csv",
            b"id,x\n1,secret\n2\n",
            "'t.csv', line 3 must have 2 cells, one for each title, got 1$",
        ),
        ("t.csv", b"\nid,x\n\r\n1,secret\n2,3,4\n", "line 5 must have 2 cells, .*, got 3$"),
        ("t.csv", b"x\n\n2,secret\n", "line 3 must have 1 cells, .*, got 2;"),
        ("t.csv", b"id,x\n1,\xff\xfe\n", "cannot be read: "),
        ("t.csv", b"x,y\n1,2\n", r"id must be one of the columns \['x', 'y'\], got 'id'"),
        ("t.parquet", b"nonsense", "cannot be read"),
        ("t.arrow", b"nonsense", "cannot be read"),
        ("t.svm", b"1 nonsense:secret\n", "a LIBSVM file"),
        ("t.xls", b"x", r"a file that ends in \['\.csv'"),
        ("sqlite:gone.db", None, r"'gone\.db' cannot be read: no such file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    query = "SELECT 1" if ":" in name else None
    with pytest.raises(InputError, match=said) as caught:
        read(name, id="id", query=query, folder=tmp_path)
    assert "secret" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_what_is_no_table_at_all(folder):
    with pytest.raises(InputError, match="an Arrow object, got 'int'"):
        open_source("bank", 3)
    with pytest.raises(InputError, match="a database needs a query, got none"):
        open_source("bank", "sqlite:t.db", folder=folder)
    with pytest.raises(InputError, match="query must be for a database"):
        open_source("bank", "t.csv", query="SELECT 1", folder=folder)
    with pytest.raises(InputError, match=r"columns must be some of .*, got 'salary'"):
        list(opened("csv", folder).blocks(["salary"]))
    with pytest.raises(InputError, match="has no id column"):
        opened("csv", folder, id=None).ids()


def test_a_csv_file_with_a_mark_at_its_beginning(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfid,x\n1,NA\n2,\n3,4\n")
    source = open_source("bank", "t.csv", id="id", folder=tmp_path)
    (block,) = source.blocks(["x"])
    assert block.column("x").to_pylist() == [None, None, "4"]


def test_without_pyarrow_the_remedy_is_named(monkeypatch, folder):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r'pip install "vertikal\[node\]"'):
        opened("csv", folder)


FOREIGN = "kunde;guthaben;name\n1,5;1,5;Zoë\n2,5;-2.000,5;3,x\n3,5;7e3;,25\n"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf8"])
def test_a_file_with_its_own_separator_decimal_comma_and_encoding(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes(FOREIGN.encode(encoding))
    dialect = CsvDialect(";", ",", encoding)
    source = open_source("bank", "t.csv", id="kunde", folder=tmp_path, dialect=dialect)
    (batch,) = source.blocks(["kunde", "guthaben", "name"])
    # Ids stay as they are, and so does what is no number with one decimal comma.
    assert batch.to_pydict() == {
        "kunde": ["1,5", "2,5", "3,5"],
        "guthaben": ["1.5", "-2.000,5", "7e3"],
        "name": ["Zoë", "3,x", ".25"],
    }


def test_a_wrong_separator_or_encoding_is_named(tmp_path):
    (tmp_path / "t.csv").write_bytes(FOREIGN.encode("latin-1"))
    with pytest.raises(InputError, match="one for each title, got 3; a separator other than"):
        open_source("bank", "t.csv", id="kunde", folder=tmp_path)
    (tmp_path / "t.csv").write_bytes(FOREIGN.replace(",", ".").encode("latin-1"))
    with pytest.raises(InputError, match=r'all in one: set separator = ";"\?\), got \'kunde\''):
        open_source("bank", "t.csv", id="kunde", folder=tmp_path)
    wrong = CsvDialect(";", ",")
    with pytest.raises(InputError, match="invalid UTF8 data; a table in a party file may name its"):
        list(open_source("bank", "t.csv", folder=tmp_path, dialect=wrong).blocks(["name"]))
    wrong = CsvDialect(";", ",", "ascii")
    with pytest.raises(InputError, match=r"'t.csv' cannot be read: it is not in its encoding"):
        list(open_source("bank", "t.csv", folder=tmp_path, dialect=wrong).blocks(["name"]))
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="separator, decimal and encoding must be for a CSV file"):
        open_source("bank", "t.parquet", folder=tmp_path, dialect=wrong)


def test_a_filter_leaves_rows_out_of_all_that_a_source_hands_out(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("id;balance;closed\n1;1,5;0\n2;2,5;1\n3;3,5;0\n4;;0\n")
    dialect = CsvDialect(";", ",")
    whole = open_source("bank", path, id="id", dialect=dialect)
    source = open_source("bank", path, id="id", dialect=dialect, rows="balance > 2 AND closed = 0")
    assert source.ids().values == (b"3",)
    assert [block.to_pydict() for block in source.blocks(["balance"])] == [{"balance": ["3.5"]}]
    assert source.columns == whole.columns
    before = source.digest(["balance"])
    path.write_text(path.read_text().replace("1;1,5;0", "1;1,75;0"))
    assert source.digest(["balance"]) == before  # about a row that it does not have
    path.write_text(path.read_text().replace("2;2,5;1", "2;2,5;0"))
    assert source.digest(["balance"]) != before
    with pytest.raises(InputError, match=r"rows must be about the columns .*, got 'region'"):
        open_source("bank", path, id="id", dialect=dialect, rows="region = 'x'")


def test_a_digest_per_row_tells_which_rows_changed():
    frame = pd.DataFrame({"n": [1.0, 2.0, None], "word": ["a", "b", "c"], "other": [1, 2, 3]})
    before = open_source("bank", frame).row_digests(["n", "word"])
    frame.loc[1, "word"], frame.loc[0, "other"] = "x", 9
    after = open_source("bank", frame).row_digests(["n", "word"])
    assert [one == two for one, two in zip(before, after, strict=True)] == [True, False, True]
    assert len(set(before)) == 3
