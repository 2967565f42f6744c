"""A party's own entry in the catalogue: as much as its owner allows, to those it is for."""

from __future__ import annotations

import msgspec
import pytest

from tests.node.alone import alone
from tests.organisations import lay_out
from tests.waiting import until
from vertikal.errors import InputError
from vertikal.node.approval import catalog
from vertikal.node.approval.catalog import (
    CatalogEntry,
    ColumnEntry,
    TableEntry,
    made_printable,
    rows_in_words,
)
from vertikal.node.config.party_file import PartyFile


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (0, "fewer than 100"),
        (99, "fewer than 100"),
        (100, "100 to 1,000"),
        (523, "100 to 1,000"),
        (999, "100 to 1,000"),
        (1000, "1,000 to 10,000"),
        (45211, "10,000 to 100,000"),
    ],
)
def test_rows_are_told_to_a_power_of_ten(rows, words):
    assert rows_in_words(rows) == words


def test_names_are_told_by_default_and_no_table_is_read_for_them(tmp_path):
    lay_out(tmp_path, rows=60)
    (tmp_path / "bank" / "people.csv").unlink()
    with alone(tmp_path) as (bank, said):
        entry = bank.own_catalog.entry("lender")
        assert entry.level == "names"
        (table,) = entry.tables
        assert (table.name, table.rows) == ("people", "")
        offer = bank.home.file.tables["people"]
        assert table.columns == tuple(ColumnEntry(one, "feature") for one in offer.features)
        assert any("at least 20 people" in words for words in entry.policy)
        assert any(words.startswith("level 'open': ") for words in entry.policy)
        # It is for those who may submit jobs, and for nobody else.
        assert bank.own_catalog.entry("shop") == CatalogEntry("none")
    assert said == []


def test_tables_for_scoring_are_no_part_of_it(tmp_path):
    lay_out(tmp_path, rows=60)
    file = tmp_path / "bank" / "party.toml"
    table = '[tables.new]\nsource = "x.csv"\nid = "customer"\nscores_for = ["people"]\n[policy]'
    file.write_text(file.read_text().replace("[policy]", table, 1))
    with alone(tmp_path) as (bank, _):
        assert [one.name for one in bank.own_catalog.entry("lender").tables] == ["people"]


def test_types_and_rows_are_told_if_the_owner_says_so(tmp_path):
    lay_out(tmp_path, rows=60, policy='catalog = "summary"\n')
    path = tmp_path / "bank" / "people.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([f"{lines[0]},town", *(f"{one},Bern" for one in lines[1:])]))
    file = tmp_path / "bank" / "party.toml"
    file.write_text(file.read_text().replace("labels = []", 'labels = ["town"]'))
    with alone(tmp_path) as (bank, _):
        bank.own_catalog.begin_survey()
        until(lambda: bank.own_catalog.entry("lender").tables[0].rows, "the table is read")
        (table,) = bank.own_catalog.entry("lender").tables
        assert table.rows == "100 to 1,000"
        assert {one.kind for one in table.columns if one.use == "feature"} == {"number"}
        assert table.columns[-1] == ColumnEntry("town", "label", "text")


def test_a_table_that_cannot_be_read_is_told_without_rows(tmp_path):
    lay_out(tmp_path, rows=60, policy='catalog = "summary"\n')
    (tmp_path / "bank" / "people.csv").unlink()
    with alone(tmp_path) as (bank, said):
        bank.own_catalog.begin_survey()
        until(lambda: said, "the owner hears of it")
        assert "people" in said[0]
        assert bank.own_catalog.entry("lender").tables[0].rows == ""


def test_columns_beyond_a_message_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog, "MOST_BYTES", 60)
    lay_out(tmp_path, rows=60)
    with alone(tmp_path) as (bank, _):
        (table,) = bank.own_catalog.entry("lender").tables
        offered = len(bank.home.file.tables["people"].features)
        assert 0 < len(table.columns) < offered
        assert table.left_out == offered - len(table.columns)


def test_nothing_is_told_if_the_owner_says_so(tmp_path):
    lay_out(tmp_path, rows=60, policy='catalog = "none"\n')
    with alone(tmp_path) as (bank, _):
        assert bank.own_catalog.entry("lender") == CatalogEntry("none")


def test_another_word_is_refused(tmp_path):
    lay_out(tmp_path, rows=60, policy='catalog = "all"\n')
    with pytest.raises(InputError, match=r"policy\.catalog"):
        PartyFile.load(tmp_path / "bank" / "party.toml")


def test_no_text_of_another_party_steers_a_terminal():
    evil = "\x1b[2J\x9b\u202e" + "x" * 500
    entry = CatalogEntry(evil, (TableEntry(evil, evil, (ColumnEntry(evil, evil, evil),)),), (evil,))
    shown = msgspec.json.encode(made_printable(entry)).decode()
    assert shown.isprintable()
    assert len(made_printable(entry).tables[0].name) == catalog.MOST_NAME
