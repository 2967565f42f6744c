"""Tables at hand for predictions: read whole, and again when they have changed."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace

import pytest

from tests.organisations import lay_out
from vertikal.data.preparation import learn_preparation
from vertikal.data.sources import Source
from vertikal.errors import DeadlineExceeded, InputError
from vertikal.node.approval.offers import open_table
from vertikal.node.approval.policy import offered
from vertikal.node.approval.proposals import Proposal
from vertikal.node.config.job_file import Job
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
