"""Marks of compared keys: about one pair of keys, kept on disk, void with a new key."""

from __future__ import annotations

from tests.conformance.networks import identity
from vertikal.node.config.federation_file import FederationFile, Member
from vertikal.node.storage.compared_keys import ComparedKeys
from vertikal.secure.keys.identity import Identity


def federation(**renewed: Identity) -> FederationFile:
    """Lender, bank and shop, of whom some have other keys."""
    members = []
    for name in ("lender", "bank", "shop"):
        certificate = renewed.get(name, identity(name)).certificate
        listens = "h:1" if name == "lender" else None
        members.append(Member(name, certificate.fingerprint, certificate.pem.decode(), listens))
    return FederationFile.of(tuple(members))


def test_a_mark_is_kept_for_the_pair_that_was_compared(tmp_path):
    ComparedKeys(tmp_path, "bank").mark(federation(), "shop")
    kept = ComparedKeys(tmp_path, "bank")
    assert kept.missing(federation()) == ["lender"]
    assert kept.compared_on(federation(), "shop") is not None
    kept.mark(federation(), "lender")
    assert kept.missing(federation()) == []
    # The same file says nothing about the pairs of another party.
    assert ComparedKeys(tmp_path, "shop").missing(federation()) == ["lender", "bank"]


def test_a_new_key_of_either_party_voids_it(tmp_path):
    marks = ComparedKeys(tmp_path, "bank")
    marks.mark(federation(), "shop")
    marks.mark(federation(), "lender")
    assert marks.missing(federation(shop=Identity.create("shop"))) == ["shop"]
    assert marks.missing(federation(bank=Identity.create("bank"))) == ["lender", "shop"]


def test_a_damaged_file_counts_as_nothing_compared(tmp_path):
    marks = ComparedKeys(tmp_path, "bank")
    marks.mark(federation(), "shop")
    (tmp_path / "compared.json").write_text("[{")
    assert marks.missing(federation()) == ["lender", "shop"]
