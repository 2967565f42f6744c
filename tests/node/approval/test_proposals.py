"""Proposals and decisions: believed if signed by whom they name, and readable by everybody."""

from __future__ import annotations

import msgspec
import pytest

from tests.conformance.networks import credentials
from vertikal.errors import CertificateMismatch, InputError
from vertikal.node.approval import proposals
from vertikal.node.approval.proposals import APPROVE, SignedBytes
from vertikal.node.config.job_file import Job, Part

NAMES = ("lender", "bank", "shop")
JOB = Job({"lender": Part("people", "default"), "bank": Part("people"), "shop": Part("people")})


@pytest.fixture(scope="module")
def keys():
    return {name: credentials(name, NAMES) for name in NAMES}


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
            proposals.read_decision(SignedBytes(raw, signed.signature), keys["shop"])
    other = msgspec.msgpack.encode(msgspec.structs.replace(decision, verdict="cancel"))
    with pytest.raises(CertificateMismatch):
        proposals.read_decision(SignedBytes(other, signed.signature), keys["shop"])


def test_own_words_can_always_be_read(keys):
    signed = proposals.decide("digest", "bank", "reject", "not\ntoday\x1b[8m", keys["bank"])
    assert proposals.read_decision(signed, keys["shop"]).words == "not today?[8m"


@pytest.mark.parametrize("name", ["", "../x", "a/b", "x" * 65, ".hidden", "a b"])
def test_a_model_is_named_like_a_folder(keys, name):
    signed = proposals.propose(name, JOB, "lender", 5, keys["lender"])
    with pytest.raises(InputError, match="name of the model must be"):
        proposals.read_proposal(signed, "bank", NAMES, keys["bank"])
