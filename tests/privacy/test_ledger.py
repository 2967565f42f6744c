"""The ledger: what is booked, how it is joined, and how it shows."""

from __future__ import annotations

import pickle
import threading

import pytest

from vertikal.privacy.ledger import Disclosure, Entry, Ledger

PHASES = Disclosure("phases", "phases of rows", "the sum of the phases", masked=True)
KEYS = Disclosure("keys", "public keys", "nothing about the data", masked=False)


@pytest.fixture
def ledger():
    ledger = Ledger()
    ledger.book("shop", "bank", PHASES, 1000)
    ledger.book("shop", "bank", PHASES, 500)
    ledger.book("bank", "shop", KEYS, 40)
    ledger.book("phone", "bank", KEYS, 40)
    return ledger


def test_frames_and_bytes_add_up(ledger):
    assert ledger.entries() == [
        Entry("shop", "bank", PHASES, 2, 1500),
        Entry("bank", "shop", KEYS, 1, 40),
        Entry("phone", "bank", KEYS, 1, 40),
    ]
    assert ledger.bytes == 1580
    assert ledger.disclosures() == [PHASES, KEYS]


def test_rows_for_a_data_frame(ledger):
    assert ledger.rows()[0] == {
        "sender": "shop",
        "receiver": "bank",
        "what": "phases of rows",
        "masked": True,
        "frames": 2,
        "bytes": 1500,
        "learns": "the sum of the phases",
    }
    assert len(ledger.rows()) == 3


def test_joining_adds_and_leaves_the_parts_alone(ledger):
    other = Ledger()
    other.book("shop", "bank", PHASES, 5)
    other.book("phone", "shop", KEYS, 1)
    whole = Ledger.joined([ledger, other])
    assert whole.bytes == 1586
    assert whole.entries()[0] == Entry("shop", "bank", PHASES, 3, 1505)
    assert ledger.bytes == 1580
    assert other.bytes == 6


def test_an_empty_ledger_says_so():
    assert str(Ledger()) == "nothing left any party"
    assert Ledger().bytes == 0
    assert Ledger.joined([]).entries() == []


def test_the_table_in_text(ledger):
    lines = str(ledger).splitlines()
    shown = ["shop", "→", "bank", "1,500", "bytes", "masked", "phases", "of", "rows"]
    assert lines[0].split() == shown
    assert lines[1].split() == ["bank", "→", "shop", "40", "bytes", "open", "public", "keys"]
    assert "  • phases of rows: the sum of the phases" in lines
    assert sum("nothing about the data" in line for line in lines) == 1


def test_the_table_in_html_escapes_everything():
    ledger = Ledger()
    nasty = Disclosure("x", "<i>what</i>", 'learns & "more"', masked=False)
    ledger.book("<b>a</b>", "b&c", nasty, 1234)
    page = ledger._repr_html_()
    assert "<td>&lt;b&gt;a&lt;/b&gt;</td><td>b&amp;c</td>" in page
    assert "&lt;i&gt;what&lt;/i&gt;" in page
    assert "learns &amp; &quot;more&quot;" in page
    assert "<td>1,234</td>" in page
    assert "<b>" not in page
    assert "<i>" not in page


def test_it_survives_pickling_and_can_be_booked_on(ledger):
    copy = pickle.loads(pickle.dumps(ledger))
    assert copy.entries() == ledger.entries()
    copy.book("shop", "bank", PHASES, 1)
    assert copy.bytes == ledger.bytes + 1


def test_ledgers_with_the_same_entries_are_equal(ledger):
    assert pickle.loads(pickle.dumps(ledger)) == ledger
    assert ledger != Ledger()


def test_many_threads_book_without_loss():
    ledger = Ledger()

    def book():
        for _ in range(2000):
            ledger.book("a", "b", KEYS, 3)

    threads = [threading.Thread(target=book) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.entries() == [Entry("a", "b", KEYS, 8000, 24000)]
