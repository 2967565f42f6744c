"""Records of jobs: what they say, and what survives on disk."""

from __future__ import annotations

from vertikal.node.approvals import APPROVE, Decision, Proposal, Signed
from vertikal.node.job import Job, Part
from vertikal.node.jobs import Record


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
