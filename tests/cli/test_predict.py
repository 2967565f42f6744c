"""``vertikal predict``: the ids that it reads, and what it refuses before anything is asked for."""

from __future__ import annotations

import pyarrow
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from vertikal.cli import main
from vertikal.cli.predict import read_ids
from vertikal.errors import InputError


def table(path, **columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_ids_of_both_kinds_of_files(tmp_path):
    path = tmp_path / "ids.csv"
    path.write_bytes("\ufeffid,place\n 7 ,a\n\n007,b\n7,c\n".encode())
    assert read_ids(path, None) == read_ids(path, "id") == ["7", "007", "7"]
    assert read_ids(path, "place") == ["a", "b", "c"]
    assert read_ids(table(tmp_path / "ids.parquet", id=[7, 12]), None) == ["7", "12"]
    assert read_ids(table(tmp_path / "ids.parquet", n=[1.5], id=["7 "]), "id") == ["7"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"id,place\n7,a\n8\n", "of the 2 ids in 'ids.csv', 1 are missing or empty"),
        (b"id,place\n", "of the 0 ids in 'ids.csv', there are none"),
        (b"", r"--column must be one of \[\], got 'place'"),
        (b"id\n7\n", r"--column must be one of \['id'\], got 'place'"),
        (b"id,place\n7,\xff\xfe\n", "'ids.csv' cannot be read: 'utf-8' codec"),
    ],
)
def test_csv_files_that_are_refused(tmp_path, content, words):
    path = tmp_path / "ids.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_ids(path, "place")


def test_other_files_that_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"'gone.csv' cannot be read: No such file or directory$"):
        read_ids(tmp_path / "gone.csv", None)
    with pytest.raises(InputError, match=r"'gone.parquet' cannot be read"):
        read_ids(tmp_path / "gone.parquet", None)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 is how it begins")
    with pytest.raises(InputError, match=r"'broken.parquet' cannot be read"):
        read_ids(broken, None)
    with pytest.raises(InputError, match=r"of the 2 ids in 'f.parquet', 2 are of type float"):
        read_ids(table(tmp_path / "f.parquet", id=[1.0, 2.0]), None)
    with pytest.raises(InputError, match="1 are missing or empty"):
        read_ids(table(tmp_path / "n.parquet", id=[1, None]), None)


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("scores.txt", "--out must be a file that ends in .parquet or .csv, got 'scores.txt'"),
        ("nowhere/scores.csv", "--out must be in a folder that exists, got 'nowhere'"),
    ],
)
def test_where_scores_cannot_go_is_said_first(tmp_path, out, words):
    ids = tmp_path / "ids.csv"
    ids.write_text("id\n1\n")
    arguments = ["predict", "credit", "--ids", str(ids), "-o", str(tmp_path / out)]
    done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, done.stderr) == (1, f"error: {words}\n")
