"""Tables at hand for predictions: read whole, and again when they have changed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.node.worlds import lay_out
from vertikal.data.preparation import learn
from vertikal.errors import InputError
from vertikal.node.approvals import Proposal
from vertikal.node.job import Job
from vertikal.node.offers import open_table
from vertikal.node.policy import offered
from vertikal.node.shelf import Model, Shelf
from vertikal.node.site import Site


@pytest.fixture
def site(tmp_path):
    lay_out(tmp_path, rows=30)
    one = Site(tmp_path / "bank" / "party.toml")
    yield one
    one.close()


@pytest.fixture
def model(site):
    """A model of the bank's table; of its shard only the columns are there."""
    job = Job.load(site.folder.parent / "lender" / "credit.toml")
    proposal = Proposal("credit", job, "lender", 0.0, "1", 30, "")
    columns = offered(site.file, proposal)[1]
    preparation = learn(open_table(site, proposal), columns)[0]
    record = SimpleNamespace(proposal=proposal, digest="f" * 64)
    return Model(record, None, SimpleNamespace(columns=preparation.titles), preparation)


def test_a_table_without_rows_is_refused(site, model):
    table = site.folder / "people.csv"
    table.write_text(table.read_text().splitlines()[0] + "\n")
    with pytest.raises(InputError, match=r"table of bank: 'people.csv' has no rows"):
        Shelf(site).rows(model)


def test_a_request_uses_one_reading_of_its_table(site, model):
    shelf, table = Shelf(site), site.folder / "people.csv"
    rows = shelf.rows(model)
    before = rows.table(model, ("1001",)).block(slice(None))
    titles, *lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join([titles, *(one for one in lines if not one.startswith("1001,"))]))
    assert rows.known(("1001",)).all()
    assert (rows.table(model, ("1001",)).block(slice(None)) == before).all()
    assert not shelf.rows(model).known(("1001",)).any()
