"""The catalogue between services: what is told to whom, and nobody is waited for in vain."""

from __future__ import annotations

import msgspec
import pytest
from click.testing import CliRunner

from tests.node.alone import alone
from tests.node.services import trio
from tests.organisations import WITH_NOTARY, lay_out
from tests.waiting import until
from vertikal.cli import main
from vertikal.mesh.network_links import Link
from vertikal.node.approval.catalog import CatalogEntry, TableEntry
from vertikal.node.links import catalog_exchange
from vertikal.node.links.messages import CatalogAsked, CatalogTold
from vertikal.node.storage.audit_log import read

POLICY = {"bank": 'catalog = "summary"\n', "shop": 'catalog = "none"\n'}


@pytest.fixture
def world(tmp_path, quick_beats):
    lay_out(tmp_path, rows=60, policy=POLICY, names=WITH_NOTARY)
    with trio(tmp_path, ("lender", "bank", "shop")) as three:
        yield three


def test_each_tells_what_its_owner_allows(world, tmp_path):
    lender = world["lender"]

    def rows():
        bank = lender.answer({"command": "catalog", "names": ["bank"]})[0]
        return bank["tables"][0]["rows"] if bank["tables"] else ""

    until(lambda: rows() == "100 to 1,000", "the bank has read its table", world.told)
    party = ["--party", str(tmp_path / "lender" / "party.toml")]
    shown = CliRunner().invoke(main, ["catalog", *party])
    assert shown.exit_code == 1
    assert "bank   people  100 to 1,000  " in shown.output
    assert "  feature  number\n" in shown.output
    assert "bank: at least 20 people whom all parties have" in shown.output
    assert "shop: tells nothing" in shown.output
    assert "notary: it is not connected" in shown.output
    features = world["shop"].home.file.tables["people"].features
    assert not any(one in shown.output for one in features)
    events = [
        (one.event, one.facts.get("peer")) for one in read(world["bank"].home.store / "audit.log")
    ]
    assert ("catalogue told", "lender") in events
    # Without asking anybody: what the others read of the bank.
    mine = world["bank"].answer({"command": "catalog", "names": [], "mine": True})
    assert [(one["party"], one["level"]) for one in mine] == [
        ("lender", "summary"),
        ("shop", "none"),
        ("notary", "none"),
    ]


def test_a_peer_that_does_not_answer_is_not_waited_for_long(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog_exchange, "WAIT", 0.2)
    lay_out(tmp_path, rows=60)
    with alone(tmp_path, "lender") as (lender, _):
        lender.links.link_up(Link("bank", False))
        (bank,) = lender.answer({"command": "catalog", "names": ["bank"]})
        assert bank["fault"].startswith("no answer within")
        assert not bank["tables"]


class Exchange:
    """One end, whose messages are kept; its peer answers at once, or not."""

    def __init__(self, home, own=None):
        self.sent = []
        self.reply = None
        self.exchange = catalog_exchange.CatalogExchange(home, own, self.tell)

    def tell(self, peer, message):
        self.sent.append((peer, message))
        if self.reply is not None and isinstance(message, CatalogAsked):
            self.exchange.hear(peer, CatalogTold(message.number + self.reply, ENTRY))


ENTRY = CatalogEntry("names", (TableEntry("evil\x1b[2J", "", ()),), ())


def test_an_answer_is_taken_from_whom_it_was_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog_exchange, "WAIT", 0.1)
    one = Exchange(None)
    one.reply = 0
    found = one.exchange.ask(["bank"])["bank"]
    assert found is not None
    assert found.tables[0].name == "evil?[2J"
    one.reply = 1  # the answer to another question
    assert one.exchange.ask(["bank"]) == {"bank": None}


def test_questions_of_one_peer_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog_exchange, "QUESTIONS", (2, 3600.0))
    lay_out(tmp_path, rows=60)
    with alone(tmp_path) as (bank, _):
        one = Exchange(bank.home, bank.own_catalog)
        for number in range(5):
            one.exchange.answer("lender", CatalogAsked(number))
        one.exchange.answer("shop", CatalogAsked(9))
    told = [(peer, message.number, message.entry.level) for peer, message in one.sent]
    assert told == [("lender", 0, "names"), ("lender", 1, "names"), ("shop", 9, "none")]
    assert b"balance" not in msgspec.msgpack.encode(one.sent[-1][1])
