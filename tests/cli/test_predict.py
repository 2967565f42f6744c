"""``vertikal predict``: the ids that it reads, and what it refuses before anything is asked for."""

from __future__ import annotations

import csv
import re
from types import SimpleNamespace

import pyarrow
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from vertikal.cli import main, predict
from vertikal.cli.predict import read_ids, write_rows
from vertikal.errors import InputError
from vertikal.node.models.store import ModelStore


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
    """Rows of the day that the first request took are spent."""
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

    monkeypatch.setattr(csv.DictWriter, "writerows", full)
    monkeypatch.setattr(pyarrow.parquet, "write_table", full)
    with pytest.raises(InputError, match=r"--out: 'scores.* cannot be written: No space left"):
        write_rows(out, [{"id": "1", "status": "ok"}])
    assert out.read_bytes() == b"of yesterday"
    assert list(tmp_path.iterdir()) == [out]


@pytest.fixture
def lender(tmp_path, monkeypatch):
    """A party with a model of its table of people, and two tables that may be scored."""
    path = tmp_path / "party.toml"
    path.write_text(
        'name = "lender"\nkey = "k"\ncertificate = "c"\nfederation = "f"\nstore = "store"\n'
        '[tables.people]\nsource = "people.csv"\nid = "id"\nfeatures = ["x"]\nlabels = ["y"]\n'
        '[tables.new]\nsource = "new.csv"\nid = "number"\nscores_for = ["people"]\n'
        'rows = "x > 0"\n'
        '[tables.other]\nsource = "people.csv"\nid = "id"\nfeatures = ["x"]\n'
    )
    (tmp_path / "new.csv").write_text("number,x\n1,1\n2,0\n3,1\n4,2\n")
    facts = {"parties": {"lender": {"table": "people"}}}
    monkeypatch.setattr(
        ModelStore, "show", lambda self, name, version: SimpleNamespace(facts=facts)
    )
    (tmp_path / "store").mkdir(mode=0o700)
    return tmp_path


def invoke(folder, *arguments):
    party = ["--party", str(folder / "party.toml"), "-o", str(folder / "scores.csv")]
    return CliRunner().invoke(main, ["predict", "credit", *arguments, *party])


def test_the_people_of_a_table_are_scored_as_far_as_others_allow(lender, monkeypatch):
    """And another day the rest, without asking again about those who have a score."""
    asked, allowed = [], ["1"]

    def ask(party, command, *, ids, **rest):
        asked.append((command, ids, rest["version"]))
        scores = [
            {"id": one, "status": "ok", "value": 0.5, "probability": {"yes": 0.6}}
            if one in allowed
            else {"id": one, "status": "refused", "value": None}
            for one in ids
        ]
        reason = "" if set(ids) <= set(allowed) else "bank refused: 1 of 1 a day are used"
        return {"scores": scores, "reason": reason, "used_up": bool(reason)}

    monkeypatch.setattr(predict, "ask_service", ask)
    monkeypatch.setattr(predict, "BATCH", 2)
    done = invoke(lender, "--table", "new")
    assert done.stdout == "3 ids (1 ok, 2 refused) written to scores.csv\n"
    assert done.stderr == "refused: bank refused: 1 of 1 a day are used\n"
    assert asked == [("score", ["1", "3"], None)]  # the second batch is not asked for
    allowed += ["3", "4"]
    done = invoke(lender, "--table", "new", "--resume")
    assert (done.exit_code, done.stderr) == (0, "")
    assert asked[1:] == [("score", ["3", "4"], None)]
    lines = (lender / "scores.csv").read_text().splitlines()
    assert lines == ["id,status,value,probability_yes", *(f"{i},ok,0.5,0.6" for i in (1, 3, 4))]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--table", "other"],
            r"--table must be one that model 'credit' may score, of \['new'",
        ),
        (["--table", "gone"], r'a table for scoring says scores_for = \["people"\], got'),
        (["--table", "new", "--resume"], "--resume must be with a file of scores"),
        ([], "give --ids FILE"),
        (["--table", "new", "--column", "x"], "give --ids FILE"),
        (["--table", "new", "--ids", "x.csv"], "give --ids FILE"),
    ],
)
def test_tables_that_are_not_scored(lender, arguments, words):
    (lender / "scores.csv").write_text("name\nx\n")
    done = invoke(lender, *arguments)
    assert done.exit_code in (1, 2)
    assert re.search(words, done.stderr), done.stderr
