"""``vertikal predict``: the ids that it reads, and what it refuses before anything is asked for."""

from __future__ import annotations

import pyarrow
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from vertikal.cli import main, predict
from vertikal.cli.predict import read_ids, write_rows
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
        (b"id,place\n7,a\n8\n", r"'ids.csv', line 3 must have 2 cells, .* got 1"),
        (b"id,place\n7,a\n8,\n", "of the 2 ids in 'ids.csv', 1 are missing or empty"),
        (b"id,place\n", "of the 0 ids in 'ids.csv', there are none"),
        (b"", "table of ids must be a CSV file with titles, got 'ids.csv'"),
        (b"id\n7\n", r"--column must be one of \['id'\], got 'place'"),
        (b"id,place\n7,\xff\xfe\n", "'ids.csv' cannot be read: invalid UTF8 data"),
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
    # Its lines would go out as ids.
    (tmp_path / "bank.key").write_text("-----BEGIN PRIVATE KEY-----\nsecret\n")
    with pytest.raises(InputError, match=r"table of ids must be a file that ends in \['.csv'"):
        read_ids(tmp_path / "bank.key", None)
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


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_later_batch_that_fails_loses_no_earlier_one(tmp_path, monkeypatch, kind):
    """What the first took of the rows of a day is spent."""
    ids, out = tmp_path / "ids.csv", tmp_path / f"scores.{kind}"
    wanted = [str(number) for number in range(25_000)]
    ids.write_text("\n".join(["id", *wanted]))

    def ask(party, command, *, ids, **rest):
        if wanted[-1] in ids:
            raise InputError("5000 rows asked for, 20000 of 20000 a day are used")
        return [{"id": one, "status": "ok", "value": 0.5} for one in ids]

    monkeypatch.setattr(predict, "ask_service", ask)
    done = CliRunner().invoke(main, ["predict", "credit", "--ids", str(ids), "-o", str(out)])
    assert done.exit_code == 1
    assert done.stderr.splitlines() == [
        f"the first 20000 of 25000 ids written to scores.{kind}, 5000 are missing",
        "error: 5000 rows asked for, 20000 of 20000 a day are used",
    ]
    assert read_ids(out, "id") == wanted[:20_000]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_scores_that_cannot_be_written_leave_the_earlier_file(tmp_path, monkeypatch, kind):
    out = tmp_path / f"scores.{kind}"
    out.write_bytes(b"of yesterday")

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(predict.csv.DictWriter, "writerows", full)
    monkeypatch.setattr(pyarrow.parquet, "write_table", full)
    with pytest.raises(InputError, match=r"--out: 'scores.* cannot be written: No space left"):
        write_rows(out, [{"id": "1", "status": "ok"}])
    assert out.read_bytes() == b"of yesterday"
    assert list(tmp_path.iterdir()) == [out]
