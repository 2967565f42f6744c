"""Tables at hand for predictions: read whole, and again when they have changed."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace

import msgspec
import pytest

from tests.organisations import lay_out
from vertikal.data.preparation import learn_preparation
from vertikal.data.sources import Source
from vertikal.errors import DeadlineExceeded, InputError
from vertikal.node.approval.offers import open_table
from vertikal.node.approval.policy import offered
from vertikal.node.approval.proposals import Proposal
from vertikal.node.config.job_file import Job
from vertikal.node.config.party_file import Offer
from vertikal.node.models.job_models import JobModels
from vertikal.node.predictions import model_cache
from vertikal.node.predictions.model_cache import Model, ModelCache
from vertikal.node.storage.party_home import PartyHome


@pytest.fixture
def home(tmp_path):
    lay_out(tmp_path, rows=30)
    one = PartyHome(tmp_path / "bank" / "party.toml")
    yield one
    one.close()


@pytest.fixture
def model(home):
    """A model of the bank's table; of its shard only the columns are there."""
    job = Job.load(home.folder.parent / "lender" / "credit.toml")
    proposal = Proposal("credit", job, "lender", 0.0, "1", 30, "")
    columns = offered(home.file, proposal)[1]
    preparation = learn_preparation(open_table(home, proposal), columns)[0]
    record = SimpleNamespace(proposal=proposal, digest="f" * 64)
    return Model(record, None, SimpleNamespace(columns=preparation.titles), preparation)


def test_a_table_without_rows_is_refused(home, model):
    table = home.folder / "people.csv"
    table.write_text(table.read_text().splitlines()[0] + "\n")
    with pytest.raises(InputError, match=r"table of bank: 'people.csv' has no rows"):
        ModelCache(home, JobModels(home)).rows(model)


def test_a_request_uses_one_reading_of_its_table(home, model):
    at_hand, table = ModelCache(home, JobModels(home)), home.folder / "people.csv"
    rows = at_hand.rows(model)
    before = rows.table(model, ("1001",)).block(slice(None))
    titles, *lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join([titles, *(one for one in lines if not one.startswith("1001,"))]))
    assert rows.known(("1001",)).all()
    assert (rows.table(model, ("1001",)).block(slice(None)) == before).all()
    assert not at_hand.rows(model).known(("1001",)).any()


def after_each_reading(monkeypatch, act):
    real = Source.blocks

    def blocks(self, columns):
        yield from real(self, columns)
        if self.id is not None:
            act()

    monkeypatch.setattr(Source, "blocks", blocks)


def test_a_file_replaced_while_it_is_read(home, model, monkeypatch):
    table, fresh = home.folder / "people.csv", home.folder / "fresh.csv"
    before = (
        ModelCache(home, JobModels(home))
        .rows(model)
        .table(model, ("1001", "1002"))
        .block(slice(None))
    )
    titles, *lines = table.read_text().splitlines()
    fresh.write_text("\n".join([titles, *reversed(lines)]))
    after_each_reading(monkeypatch, lambda: fresh.exists() and fresh.rename(table))
    rows = ModelCache(home, JobModels(home)).rows(model)
    assert (rows.table(model, ("1001", "1002")).block(slice(None)) == before).all()
    assert next(iter(rows.places)) == lines[-1].split(",")[0].encode()


def test_a_file_that_never_stands_still_is_refused(home, model, monkeypatch):
    times = iter(range(100))
    after_each_reading(monkeypatch, lambda: os.utime(home.folder / "people.csv", (0, next(times))))
    with pytest.raises(InputError, match="table of bank changes while it is read"):
        ModelCache(home, JobModels(home)).rows(model)


def test_a_file_of_the_same_size_and_time_in_the_place_of_another(home, model):
    at_hand, table, fresh = (
        ModelCache(home, JobModels(home)),
        home.folder / "people.csv",
        home.folder / "fresh.csv",
    )
    old = at_hand.rows(model)
    titles, *lines = table.read_text().splitlines(keepends=True)
    fresh.write_text("".join([titles, *reversed(lines)]))
    then = table.stat().st_mtime_ns
    os.utime(fresh, ns=(then, then))
    fresh.rename(table)
    assert list(at_hand.rows(model).places) == list(reversed(old.places))


def test_who_waits_for_a_table_for_too_long_is_told(home, model, monkeypatch):
    """And nobody else waits for it: a database that hangs holds up its own models only."""
    reading, finish = threading.Event(), threading.Event()
    real = model_cache.open_offer

    def open_offer(*arguments):
        reading.set()
        assert finish.wait(30)
        return real(*arguments)

    monkeypatch.setattr(model_cache, "PATIENCE", 0.01)
    monkeypatch.setattr(model_cache, "open_offer", open_offer)
    shared = ModelCache(home, JobModels(home))
    first = threading.Thread(target=shared.rows, args=(model,))
    first.start()
    try:
        assert reading.wait(30)
        with pytest.raises(DeadlineExceeded, match="bank: its table is being read, for 0 s"):
            shared.rows(model)
        with pytest.raises(InputError, match="bank has no model of this job"):
            shared.model(model.record)
    finally:
        finish.set()
        first.join()
    assert shared.rows(model).known(("1001",)).all()


def scoring_table(home, lines, **changes):
    """Offer a table for scoring beside the bank's, with the lines that ``lines`` makes of its."""
    titles, *rows = (home.folder / "people.csv").read_text().splitlines()
    (home.folder / "new.csv").write_text("\n".join([titles, *lines(rows)]) + "\n")
    trained = home.file.tables["people"]
    new = Offer("new.csv", "customer", scores_for=("people",), **changes)
    home.file = msgspec.structs.replace(home.file, tables={"people": trained, "new": new})


def renamed(row, id, **cells):
    first, *others = row.split(",")
    for place, text in cells.items():
        others[int(place[1:])] = text
    return ",".join([id or first, *others])


def test_people_of_a_table_for_scoring_are_found_before_those_of_training(home, model):
    cache = ModelCache(home, JobModels(home))
    alone = cache.rows(model)
    first = next(iter(alone.places)).decode()
    scoring_table(home, lambda rows: [renamed(rows[0], "n1"), renamed(rows[1], first)])
    rows = cache.rows(model)
    assert rows.known(("n1", first, "1001", "nobody")).tolist() == [True, True, True, False]

    def values(source, one):
        return source.table(model, (one,)).block(slice(None)).tolist()

    second = list(alone.places)[1].decode()
    assert values(rows, "n1") == values(alone, first)
    assert values(rows, first) == values(alone, second)  # newer than the row of training
    assert values(rows, second) == values(alone, second)
    assert rows.held(("n1", "nobody", first)) == {0: b"n1", 2: first.encode()}


def test_a_row_without_a_cell_is_not_replaced_by_an_older_one(home, model):
    scoring_table(home, lambda rows: [renamed(rows[0], None, c0=""), renamed(rows[1], "n1")])
    one = (home.folder / "new.csv").read_text().splitlines()[1].split(",")[0]
    rows = ModelCache(home, JobModels(home)).rows(model)
    assert rows.known((one, "n1")).tolist() == [False, True]


def test_a_filter_of_a_table_for_scoring_and_a_table_of_nobody(home, model):
    scoring_table(
        home,
        lambda rows: [renamed(rows[0], "n1"), renamed(rows[1], "n2")],
        rows="customer <> 'n1'",
    )
    cache = ModelCache(home, JobModels(home))
    assert cache.rows(model).known(("n1", "n2", "1001")).tolist() == [False, True, True]
    scoring_table(home, lambda rows: [])
    assert cache.rows(model).known(("n1", "n2", "1001")).tolist() == [False, False, True]


def test_a_table_for_scoring_is_read_again_when_it_has_changed(home, model):
    scoring_table(home, lambda rows: [renamed(rows[0], "n1")])
    cache = ModelCache(home, JobModels(home))
    before = cache.rows(model)
    assert cache.rows(model) is before
    scoring_table(home, lambda rows: [renamed(rows[0], "n2")])
    assert cache.rows(model).known(("n1", "n2")).tolist() == [False, True]
    (home.folder / "new.csv").unlink()
    with pytest.raises(InputError, match="table of bank cannot be read: No such file"):
        cache.rows(model)
