"""The disclosure account: sums over jobs, each booked once, in a log that shows changes."""

from __future__ import annotations

import threading
import time

import pytest

from vertikal.errors import LogTampered
from vertikal.node.storage.audit_log import verify
from vertikal.node.storage.disclosure_account import DisclosureAccount, Opening


def opening(job, receiver="lender", table="accounts", **changes):
    content = {"rows": 500, "values": 50, "value_bits": 6, "level": "values", **changes}
    return Opening(job=job, name="credit", table=table, receiver=receiver, **content)


def allowed():
    pass


@pytest.fixture
def account(tmp_path):
    return DisclosureAccount(tmp_path, "bank")


def test_jobs_add_up_by_table_and_receiver(account):
    assert account.balances() == []
    account.book([opening("a"), opening("a", "insurer", values=10)], allowed)
    account.book([opening("b", gradients=7, gradient_bits=12)], allowed)
    account.book([opening("c", table="loans")], allowed)
    account.book([opening("d", bounded=False, level="open", values=64, value_bits=8)], allowed)
    found = {(one.table, one.receiver): one for one in account.balances()}
    assert set(found) == {("accounts", "lender"), ("accounts", "insurer"), ("loans", "lender")}
    lender = found["accounts", "lender"]
    assert (lender.row_bits, lender.unbounded_bits) == (600, 512)
    assert (lender.values, lender.gradients) == (164, 7)
    assert found["accounts", "insurer"].row_bits == 60
    assert account.balance("accounts", "lender", without="b").row_bits == 300
    assert account.balance("nothing", "lender").row_bits == 0


def test_a_job_is_booked_once_and_outlives_the_process(account, tmp_path):
    assert account.book([opening("a")], allowed) == [opening("a")]
    again = DisclosureAccount(tmp_path, "bank")
    assert again.book([opening("a")], lambda: pytest.fail("asked again")) == []
    assert again.openings() == [opening("a")]


def test_what_is_not_allowed_is_not_booked(account):
    def refuse():
        raise ValueError("too much")

    with pytest.raises(ValueError, match="too much"):
        account.book([opening("a")], refuse)
    assert account.openings() == []


def test_of_two_jobs_at_once_the_second_sees_the_first(account):
    seen = []

    def check():
        before = account.balance("accounts", "lender").row_bits
        time.sleep(0.05)
        seen.append(before)

    threads = [threading.Thread(target=account.book, args=([opening(job)], check)) for job in "abc"]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(seen) == [0, 300, 600]


def test_a_changed_entry_shows(account):
    account.book([opening("a"), opening("b", "insurer")], allowed)
    assert verify(account.path).number == 2
    text = account.path.read_text()
    account.path.write_text(text.replace('"values":50', '"values":5', 1))
    with pytest.raises(LogTampered, match="line 1 was altered"):
        verify(account.path)
