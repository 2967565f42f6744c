"""Identities of workers: fresh in each pass, good for one name, trusted as the mesh told."""

from __future__ import annotations

import ssl

import pytest

from vertikal.errors import CertificateUnknown, InputError
from vertikal.secure.keys.identity import Certificate
from vertikal.secure.keys.link_identity import LinkIdentity


def test_each_pass_has_keys_of_its_own():
    first, second = (LinkIdentity.create("bank") for _ in range(2))
    assert first.private_key != second.private_key
    assert Certificate.parse(first.certificate).name == "bank"
    assert b"PRIVATE" not in repr(first).encode()


def test_a_certificate_of_another_name_is_refused():
    bank, shop = LinkIdentity.create("bank"), LinkIdentity.create("shop")
    with pytest.raises(CertificateUnknown, match="mill sent a certificate of 'shop'"):
        bank.trusting({"mill": shop.certificate})
    with pytest.raises(InputError, match="certificate must be one"):
        bank.trusting({"mill": b"nonsense"})


def test_the_owner_of_a_certificate_is_the_party_that_told_it():
    bank, shop, other = (LinkIdentity.create(name) for name in ("bank", "shop", "shop"))
    trusting = bank.trusting({"shop": shop.certificate})
    raw = [ssl.PEM_cert_to_DER_cert(one.certificate.decode()) for one in (shop, other)]
    assert trusting.owner(raw[0]) == "shop"
    with pytest.raises(CertificateUnknown, match="nobody in this pass"):
        trusting.owner(raw[1])


def test_tls_accepts_trusted_certificates_only():
    bank = LinkIdentity.create("bank").trusting({"shop": LinkIdentity.create("shop").certificate})
    listening, dialling = bank.listening(), bank.dialling("shop")
    assert listening.verify_mode == dialling.verify_mode == ssl.CERT_REQUIRED
    assert dialling.check_hostname
    for context in (listening, dialling):
        assert context.minimum_version == ssl.TLSVersion.TLSv1_3
        assert len(context.get_ca_certs(binary_form=True)) <= 1
