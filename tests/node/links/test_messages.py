"""What services say to one another: signed by the sender, for one receiver, in one form."""

from __future__ import annotations

import msgspec
import pytest

from tests.conformance.networks import credentials
from vertikal.errors import CertificateMismatch, InputError, WireError
from vertikal.node.approval import proposals
from vertikal.node.approval.job_records import JobBook
from vertikal.node.approval.proposals import APPROVE, Signed
from vertikal.node.config.job_file import Job, Part
from vertikal.node.links.messages import Beat, Begin, pack, unpack

NAMES = ("lender", "bank", "shop")
JOB = Job({"lender": Part("people", "default"), "bank": Part("people"), "shop": Part("people")})


@pytest.fixture(scope="module")
def keys():
    return {name: credentials(name, NAMES) for name in NAMES}


def test_a_message_arrives_as_it_was_sent(keys):
    packed = pack("bank", "shop", Begin("d", 3), keys["bank"])
    assert unpack("bank", "shop", packed, keys["shop"]) == Begin("d", 3)


def test_messages_of_others_are_not_believed(keys):
    packed = pack("bank", "shop", Beat("0.1.0", 1.0), keys["bank"])
    # A relay that says that another sent it, or hands it to another.
    for sender, receiver in (("lender", "shop"), ("bank", "lender")):
        with pytest.raises(WireError, match="from 'bank' to 'shop'"):
            unpack(sender, receiver, packed, keys[receiver])
    forged = pack("bank", "shop", Beat("0.1.0", 1.0), keys["lender"])
    with pytest.raises(CertificateMismatch, match="in the name of 'bank'"):
        unpack("bank", "shop", forged, keys["shop"])


def test_every_changed_bit_is_noticed(keys):
    packed = pack("bank", "shop", Begin("digest", 3), keys["bank"])
    for place in range(0, len(packed), 3):
        changed = bytearray(packed)
        changed[place] ^= 0x10
        with pytest.raises((WireError, CertificateMismatch)):
            unpack("bank", "shop", bytes(changed), keys["shop"])


def test_nonsense_is_a_wire_error(keys):
    for raw in (b"", b"\x00" * 40, b"\x82", b"\x91" * 5000, msgspec.msgpack.encode({"raw": b"x"})):
        with pytest.raises(WireError):
            unpack("bank", "shop", raw, keys["shop"])


def test_decisions_are_of_who_signed_them(keys):
    signed = proposals.decide("digest", "bank", APPROVE, "w" * 1000, keys["bank"])
    decision = proposals.read_decision(signed, keys["shop"])
    assert (decision.party, decision.verdict, len(decision.words)) == ("bank", "approve", 300)
    for raw in (
        b"nonsense",
        msgspec.msgpack.encode(msgspec.structs.replace(decision, words="w" * 301)),
        msgspec.msgpack.encode(msgspec.structs.replace(decision, words="yes\n\nWho learns what")),
        msgspec.msgpack.encode(msgspec.structs.replace(decision, words="yes\x1b[8m")),
        msgspec.msgpack.encode(msgspec.structs.replace(decision, verdict="x")),
    ):
        with pytest.raises(InputError, match="decision: "):
            proposals.read_decision(Signed(raw, signed.signature), keys["shop"])
    other = msgspec.msgpack.encode(msgspec.structs.replace(decision, verdict="cancel"))
    with pytest.raises(CertificateMismatch):
        proposals.read_decision(Signed(other, signed.signature), keys["shop"])


def test_own_words_can_always_be_read(keys):
    signed = proposals.decide("digest", "bank", "reject", "not\ntoday\x1b[8m", keys["bank"])
    assert proposals.read_decision(signed, keys["shop"]).words == "not today?[8m"


@pytest.mark.parametrize("name", ["", "../x", "a/b", "x" * 65, ".hidden", "a b"])
def test_a_model_is_named_like_a_folder(keys, name):
    signed = proposals.propose(name, JOB, "lender", 5, keys["lender"])
    with pytest.raises(InputError, match="name of the model must be"):
        proposals.read_proposal(signed, "bank", NAMES, keys["bank"])


def test_a_book_comes_back_from_disk(keys, tmp_path):
    book = JobBook(tmp_path / "jobs", keys["bank"])
    signed = proposals.propose("credit", JOB, "lender", 5, keys["lender"])
    record = book.add(signed, proposals.read_proposal(signed, "bank", NAMES, keys["bank"]))
    for name in NAMES:
        made = proposals.decide(record.digest, name, APPROVE, "", keys[name])
        assert record.add(made, proposals.read_decision(made, keys["bank"]))
        # Once only.
        assert not record.add(made, proposals.read_decision(made, keys["bank"]))
    record.attempt, record.columns, record.table = 2, ("u",), "t"
    book.save(record)
    again = JobBook(tmp_path / "jobs", keys["bank"]).numbered(1)
    assert again.approved_by_all
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


def test_a_forged_record_on_disk_is_not_believed(keys, tmp_path):
    book = JobBook(tmp_path / "jobs", keys["bank"])
    signed = proposals.propose("credit", JOB, "lender", 5, keys["lender"])
    record = book.add(signed, proposals.decode_proposal(signed))
    forged = proposals.decide(record.digest, "shop", APPROVE, "", keys["bank"])
    record.decisions["shop"] = (forged, msgspec.msgpack.decode(forged.raw, type=proposals.Decision))
    book.save(record)
    said = []
    again = JobBook(tmp_path / "jobs", keys["bank"], said.append).numbered(1)
    assert again.decisions == {}
    assert "job 1: the decision of shop does not count any more" in said[0]
