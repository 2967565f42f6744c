"""Decisions that a party makes by itself: once per job, and no more often than its rules say."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from tests.node.alone import alone, kept, proposal
from tests.organisations import RULE, lay_out, write_job
from tests.waiting import until
from vertikal.errors import DiskFull
from vertikal.node.approval import decisions
from vertikal.node.approval.job_records import JobBook


@pytest.fixture
def root(tmp_path):
    """The bank approves one job a day by rule."""
    lay_out(tmp_path, rows=60, policy={"bank": RULE.replace("per_day = 100", "per_day = 1")})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    return tmp_path


def test_jobs_that_come_together_are_counted_one_by_one(root, monkeypatch):
    both = threading.Barrier(2)
    real = decisions.summarise_table

    def summarise_table(*arguments):
        # Whoever reads a table waits for the other, if the other may read one too.
        with suppress(threading.BrokenBarrierError):
            both.wait(0.3)
        return real(*arguments)

    monkeypatch.setattr(decisions, "summarise_table", summarise_table)
    with alone(root) as (bank, _):
        records = [kept(bank, proposal(root, name)) for name in ("one", "two")]
        consider = bank.decisions.automatic.consider
        threads = [threading.Thread(target=consider, args=(one,)) for one in records]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert sorted(one.verdict("bank") for one in records) == ["", "approve"]


def test_an_approval_by_rule_counts_after_the_job_was_ended(root):
    with alone(root) as (bank, _):
        first, second, third = (kept(bank, proposal(root, name)) for name in ("a", "b", "c"))
        consider = bank.decisions.automatic.consider
        consider(first)
        bank.decisions.cancel(first.id, "enough")
        assert first.verdict("bank") == "cancel"
        consider(second)
        assert second.verdict("bank") == ""
        again = JobBook(bank.home.store / "jobs", bank.home.keys).named(first.id)
        assert again.by_rule == first.by_rule > 0
        # A day later the rule approves again.
        first.by_rule -= 86401
        consider(third)
        assert third.verdict("bank") == "approve"


def test_what_was_left_undecided_is_considered_at_the_next_start(root):
    with alone(root) as (bank, _):
        digest = kept(bank, proposal(root)).digest
    with alone(root) as (bank, said):
        bank.start()
        record = bank.book.find(digest)
        until(lambda: record.verdict("bank") == "approve", "approved by rule", lambda: str(said))


def test_what_a_full_disk_kept_from_being_decided_is_considered_when_there_is_room(
    root, monkeypatch
):
    with alone(root) as (bank, said):
        record = kept(bank, proposal(root))
        with monkeypatch.context() as patch:

            def full(*_):
                raise DiskFull("the disk of the store is full")

            patch.setattr(bank.book, "save", full)
            bank.decisions.automatic.consider(record)
        assert said == [f"job {record.id} could not be considered: the disk of the store is full"]
        assert record.verdict("bank") == ""
        bank.beat()
        until(lambda: record.verdict("bank") == "approve", "approved by rule", lambda: str(said))


def test_an_unforeseen_error_is_told_and_the_job_stays_open(root, monkeypatch):
    def fails(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(decisions, "summarise_table", fails)
    with alone(root) as (bank, said):
        record = kept(bank, proposal(root))
        bank.decisions.automatic.consider(record)
        assert said == [f"job {record.id} could not be considered: MemoryError: no room"]
        assert record.state("bank") == "asks for your approval"


def test_what_is_decided_is_not_considered_again(root):
    with alone(root) as (bank, _):
        record = kept(bank, proposal(root))
        bank.decisions.reject(record.id, "no")
        bank.decisions.automatic.consider(record)
        assert record.verdict("bank") == "reject"
        assert not record.by_rule
