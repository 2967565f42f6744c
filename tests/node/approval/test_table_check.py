"""Tables that are looked at before any job asks for them, and by the owner who decides."""

from __future__ import annotations

import pytest

from tests.node.services import trio
from tests.organisations import lay_out, write_job
from tests.waiting import until
from vertikal.errors import InputError
from vertikal.node import service
from vertikal.node.approval.table_check import check_tables
from vertikal.node.config.party_file import Offer, PartyFile

CELLS = "customer,age,income,answer,weight\n" + "".join(
    f"{n},{n % 50 + 20},{n * 37 % 1000 + 0.5},{'yes' if n % 3 else 'no'},{n % 4}\n"
    for n in range(150)
)
OFFER = {
    "source": "t.csv",
    "id": "customer",
    "features": ("age", "income"),
    "labels": ("answer",),
    "weights": ("weight",),
}


def finding(folder, text=CELLS, cells=True, **changed):
    (folder / "t.csv").write_text(text)
    file = PartyFile(
        name="bank",
        key="",
        certificate="",
        federation="",
        store="",
        tables={"people": Offer(**OFFER | changed)},
    )
    file.check()
    (found,) = check_tables(file, folder, cells=cells)
    return found


def test_a_good_table(tmp_path):
    found = finding(tmp_path)
    assert (found.table, found.rows, found.problems, found.remarks) == ("people", 150, (), ())
    foreign = CELLS.replace(",", ";").replace(".5;", ",5;")
    assert finding(tmp_path, foreign, separator=";", decimal=",").problems == ()


@pytest.mark.parametrize(
    ("text", "changed", "said"),
    [
        (CELLS, {"source": "gone.csv"}, "'gone.csv' cannot be read: No such file"),
        (CELLS, {"id": "person"}, "id must be one of the columns"),
        (CELLS.replace(",", ";"), {}, 'set separator = ";"?'),
        (CELLS, {"features": ("age", "size")}, "no column 'size'; the columns are 'age', 'income'"),
        (CELLS.replace("\n7,", "\n8,"), {}, "1 rows repeat the id of an earlier row"),
        (CELLS.replace("\n7,", "\n,"), {}, "1 are missing or empty"),
        ("customer,age,income,answer,weight\n1,2\n", {}, "line 2 must have 5 cells"),
    ],
)
def test_what_is_found_without_reading_cells(tmp_path, text, changed, said):
    for cells in (True, False):
        found = finding(tmp_path, text, cells, **changed)
        assert any(said in one for one in found.problems), found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CELLS.replace("\n7,27,", "\n7,,"), "cells are missing (1 in 'age')"),
        (CELLS.replace("yes", "no"), "label 'answer' is the same in each row"),
        (CELLS.replace(",yes,", ",,").replace(",no,", ",,"), "has no cell that is not empty"),
        (CELLS.replace("yes,1", "yes,x"), "must be numbers, for a regression"),
    ],
)
def test_what_is_found_by_reading_cells(tmp_path, text, said):
    assert any(said in one for one in finding(tmp_path, text).problems)
    assert finding(tmp_path, text, cells=False).problems == ()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"separator": ";;"}, "separator of table 'people' must be one character"),
        ({"separator": ";", "decimal": ";"}, "decimal of table 'people' must be"),
        ({"decimal": ","}, "and not the separator"),
        ({"encoding": "klingon"}, "encoding of table 'people' must be one that Python knows"),
        ({"missing": "guess"}, "missing of table 'people' must be one of"),
        ({"weights": ("age",)}, "must name each column once"),
    ],
)
def test_settings_of_a_table_that_make_no_sense(tmp_path, changed, said):
    with pytest.raises(InputError, match=said):
        finding(tmp_path, **changed)


def spoil(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def first_balance(path):
    """The first row as it is, and without its second cell."""
    row = path.read_text().splitlines()[1]
    cells = row.split(",")
    return row, ",".join([cells[0], "", *cells[2:]])


def test_submit_and_approve_refuse_a_table_before_anything_is_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(service, "BEAT", 0.2)
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    table = tmp_path / "lender" / "people.csv"
    whole = table.read_text()
    with trio(tmp_path) as world:
        spoil(table, *first_balance(table))
        with pytest.raises(InputError, match=r"cells are missing \(1 in 'loan_amount'\)"):
            world.submit()
        table.write_text(whole.replace(",0\n", ",\n"))
        with pytest.raises(InputError, match=r"label of lender: \d+ of \d+ are missing"):
            world.submit()
        assert world["lender"].book.all() == []
        table.write_text(whole)
        table = tmp_path / "bank" / "people.csv"
        digest = world.submit().digest
        record = world.record("bank", digest)
        before = table.read_text()
        spoil(table, *first_balance(table))
        with pytest.raises(InputError, match=r"cells are missing \(1 in 'balance'\)"):
            world["bank"].decisions.approve(record.id)
        assert record.verdict("bank") == ""
        table.write_text(before)
        world["bank"].decisions.approve(record.id)


def test_a_service_names_tables_that_jobs_cannot_use(tmp_path):
    lay_out(tmp_path, rows=60)
    (tmp_path / "bank" / "people.csv").unlink()
    with trio(tmp_path, ["bank"]) as world:
        said = "table people, which jobs cannot use now: table of bank: 'people.csv' cannot be read"
        until(lambda: said in world.told(), "it says so", world.told)


def test_labels_of_a_part_of_the_rows_are_a_remark(tmp_path):
    found = finding(tmp_path, CELLS.replace(",yes,", ",,"))
    assert found.problems == ()
    assert any(
        "label 'answer': 100 cells are empty; only jobs with label" in r for r in found.remarks
    )
