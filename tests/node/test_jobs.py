"""Records of jobs: what they say, and what survives on disk."""

from __future__ import annotations

import msgspec

from tests.conformance.networks import credentials
from vertikal.node import approvals
from vertikal.node.approvals import APPROVE, Decision, Proposal, Signed
from vertikal.node.job import Job, Part
from vertikal.node.jobs import JobBook, Record

NAMES = ("lender", "bank")


def a_job():
    return Job(
        algorithm="fdskl",
        parties={"lender": Part(table="people", label="default"), "bank": Part(table="people")},
    )


def test_a_decision_that_comes_while_another_is_looked_for():
    record = Record(1, Signed(b"", b""), Proposal("m", a_job(), "lender", 0.0, "1", 60, ""))

    class Slow:
        """Read while another thread adds a decision."""

        @property
        def verdict(self):
            record.decisions["bank"] = (record.signed, Decision("", "bank", APPROVE, 0.0))
            return APPROVE

    record.decisions["lender"] = (record.signed, Slow())
    assert record.final is None
    assert list(record.decisions) == ["lender", "bank"]


def test_a_file_without_the_newer_fields_is_read(tmp_path):
    book = JobBook(tmp_path / "jobs", credentials("lender", NAMES))
    job = a_job()
    signed = approvals.propose("m", job, "lender", 60, credentials("lender", NAMES))
    book.save(book.add(signed, approvals.decode_proposal(signed)))
    path = tmp_path / "jobs" / "000001.job"
    saved = msgspec.msgpack.decode(path.read_bytes())
    del saved["by_rule"], saved["settled"]
    path.write_bytes(msgspec.msgpack.encode(saved))
    again = JobBook(tmp_path / "jobs", credentials("lender", NAMES)).numbered(1)
    assert (again.digest, again.by_rule, again.settled) == (signed.digest, 0.0, False)
