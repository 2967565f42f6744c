"""Records of jobs: what they say, and what survives on disk."""

from __future__ import annotations

import msgspec
import pytest

from tests.conformance.networks import credentials, identity
from vertikal.errors import InputError
from vertikal.node.approval import proposals
from vertikal.node.approval.job_records import JobBook, JobRecord
from vertikal.node.approval.proposals import APPROVE, Decision, Proposal, SignedBytes
from vertikal.node.config.job_file import Job, Part
from vertikal.secure.keys.credentials import Credentials
from vertikal.secure.keys.identity import Identity

NAMES = ("lender", "bank")
PARTIES = (*NAMES, "shop")
THREE = Job({"lender": Part("people", "default"), "bank": Part("people"), "shop": Part("people")})


def a_job():
    return Job(
        algorithm="fdskl",
        parties={"lender": Part(table="people", label="default"), "bank": Part(table="people")},
    )


def test_a_decision_that_comes_while_another_is_looked_for():
    record = JobRecord(1, SignedBytes(b"", b""), Proposal("m", a_job(), "lender", 0.0, "1", 60, ""))

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
    signed = proposals.propose("m", job, "lender", 60, credentials("lender", NAMES))
    book.save(book.add(signed, proposals.decode_proposal(signed)))
    path = tmp_path / "jobs" / "000001.job"
    saved = msgspec.msgpack.decode(path.read_bytes())
    del saved["by_rule"], saved["settled"]
    path.write_bytes(msgspec.msgpack.encode(saved))
    again = JobBook(tmp_path / "jobs", credentials("lender", NAMES)).named(signed.digest)
    assert (again.digest, again.by_rule, again.settled) == (signed.digest, 0.0, False)


def test_a_renewed_key_ends_open_approvals_and_nothing_that_is_over(tmp_path):
    old = credentials("bank", NAMES)
    book = JobBook(tmp_path / "jobs", old)
    for name in ("open", "done", "ended"):
        signed = proposals.propose(name, a_job(), "lender", 60, credentials("lender", NAMES))
        record = book.add(signed, proposals.decode_proposal(signed))
        for party in NAMES:
            verdict = "cancel" if (name, party) == ("ended", "bank") else APPROVE
            made = proposals.decide(record.digest, party, verdict, "", credentials(party, NAMES))
            record.add(made, proposals.read_decision(made, old))
        record.done = name == "done"
        book.save(record)
    mine = identity("bank").certificate
    renewed = {"bank": mine, "lender": Identity.create("lender").certificate}
    gone = {"bank": mine, "shop": identity("shop").certificate}
    for listed in (renewed, gone):
        said = []
        again = JobBook(tmp_path / "jobs", Credentials(identity("bank"), listed), said.append)
        states = [record.state("bank") for record in again.all()]
        assert states == ["waits for the approval of lender", "done", "cancelled by bank"]
        assert again.all()[1].approved_by_all
        assert len(said) == 1
        assert said[0].startswith(
            f"job {again.all()[0].id}: the decision of lender does not count any "
        )


@pytest.mark.parametrize("content", [b"damaged", msgspec.msgpack.encode({"number": 2})])
def test_a_damaged_file_is_named_and_left_aside(tmp_path, content):
    keys = credentials("lender", NAMES)
    book = JobBook(tmp_path / "jobs", keys)
    three = [proposals.propose(name, a_job(), "lender", 60, keys) for name in "abc"]
    for signed in three[:2]:
        book.save(book.add(signed, proposals.decode_proposal(signed)))
    path = tmp_path / "jobs" / "000002.job"
    path.write_bytes(content)
    said = []
    again = JobBook(tmp_path / "jobs", keys, said.append)
    assert [record.number for record in again.all()] == [1]
    assert said[0].startswith("job file '000002.job' of the store is damaged and left aside: ")
    again.save(again.add(three[2], proposals.decode_proposal(three[2])))
    assert path.read_bytes() == content
    assert (tmp_path / "jobs" / "000003.job").exists()


def test_a_book_comes_back_from_disk(tmp_path):
    keys = {name: credentials(name, PARTIES) for name in PARTIES}
    book = JobBook(tmp_path / "jobs", keys["bank"])
    signed = proposals.propose("credit", THREE, "lender", 5, keys["lender"])
    record = book.add(signed, proposals.read_proposal(signed, "bank", PARTIES, keys["bank"]))
    for name in PARTIES:
        made = proposals.decide(record.digest, name, APPROVE, "", keys[name])
        assert record.add(made, proposals.read_decision(made, keys["bank"]))
        # Once only.
        assert not record.add(made, proposals.read_decision(made, keys["bank"]))
    record.attempt, record.columns, record.table, record.settled = 2, ("u",), "t", True
    book.save(record)
    again = JobBook(tmp_path / "jobs", keys["bank"]).named(record.id)
    assert again.approved_by_all
    assert again.settled
    assert (again.attempt, again.columns, again.table, again.digest) == (
        2,
        ("u",),
        "t",
        record.digest,
    )
    # A final decision replaces an approval, and no approval replaces it.
    ended = proposals.decide(record.digest, "shop", "cancel", "", keys["shop"])
    assert again.add(ended, proposals.read_decision(ended, keys["bank"]))
    back = proposals.decide(record.digest, "shop", APPROVE, "", keys["shop"])
    assert not again.add(back, proposals.read_decision(back, keys["bank"]))
    assert again.state("bank") == "cancelled by shop"


def test_a_forged_record_on_disk_is_not_believed(tmp_path):
    keys = {name: credentials(name, PARTIES) for name in PARTIES}
    book = JobBook(tmp_path / "jobs", keys["bank"])
    signed = proposals.propose("credit", THREE, "lender", 5, keys["lender"])
    record = book.add(signed, proposals.decode_proposal(signed))
    forged = proposals.decide(record.digest, "shop", APPROVE, "", keys["bank"])
    record.decisions["shop"] = (forged, msgspec.msgpack.decode(forged.raw, type=proposals.Decision))
    book.save(record)
    said = []
    again = JobBook(tmp_path / "jobs", keys["bank"], said.append).named(record.id)
    assert again.decisions == {}
    assert f"job {record.id}: the decision of shop does not count any more" in said[0]


def test_a_job_is_found_by_its_id_and_by_digits_of_its_digest(tmp_path):
    keys = credentials("lender", NAMES)
    book = JobBook(tmp_path / "jobs", keys)

    def add(name):
        signed = proposals.propose(name, a_job(), "lender", 60, keys)
        return book.add(signed, proposals.decode_proposal(signed))

    first, other = add("credit"), add("credit-7f3a")
    assert first.id == f"credit-{first.digest[:4]}"
    for record in (first, other):
        for text in (record.id, f"{record.id}{record.digest[4:7]}", record.digest.upper()):
            assert book.named(text) is record
    for wrong in ("credit", "credit-", f"credit-{first.digest[:3]}", "1", "", "credit-zzzz"):
        with pytest.raises(InputError, match="there is no job"):
            book.named(wrong)
    with pytest.raises(InputError, match=f"of this name are {first.id};"):
        book.named("credit")
    with pytest.raises(InputError, match="there is no job"):
        book.named(f"debit-{first.digest[:8]}")


def test_an_id_is_longer_where_another_job_begins_alike(tmp_path):
    keys = credentials("lender", NAMES)
    book = JobBook(tmp_path / "jobs", keys)
    seen = {}
    while True:
        signed = proposals.propose("credit", a_job(), "lender", 60, keys)
        twin = seen.setdefault(signed.digest[:4], signed)
        if twin is not signed:
            break
    records = [book.add(one, proposals.decode_proposal(one)) for one in (twin, signed)]
    assert len({record.id for record in records}) == 2
    for record in records:
        assert len(record.id) > len("credit-7f3a")
        assert book.named(record.id) is record
    with pytest.raises(InputError, match=f"{records[0].id} or {records[1].id}: give more digits"):
        book.named(f"credit-{signed.digest[:4]}")
    for record in records:
        book.save(record)
    again = JobBook(tmp_path / "jobs", keys)
    assert [record.id for record in again.all()] == [record.id for record in records]
