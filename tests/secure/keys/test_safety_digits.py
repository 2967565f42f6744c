"""Safety digits: the same at both ends of a pair, and others as soon as a key is another one."""

from __future__ import annotations

import re

from tests.conformance.networks import identity
from vertikal.secure.keys.identity import Certificate, Identity
from vertikal.secure.keys.safety_digits import safety_digits


def certificate(name: str) -> Certificate:
    return identity(name).certificate


def test_both_ends_of_a_pair_read_the_same_forty_digits():
    digits = safety_digits(certificate("bank"), certificate("shop"))
    assert re.fullmatch(r"(\d{5} ){7}\d{5}", digits)
    assert safety_digits(certificate("shop"), certificate("bank")) == digits
    assert safety_digits(certificate("bank"), certificate("lender")) != digits


def test_a_man_in_the_middle_gives_the_two_ends_different_digits():
    """The inviting party gives bank a false shop, and shop a false bank."""
    false_shop, false_bank = (Identity.create(name).certificate for name in ("shop", "bank"))
    at_bank = safety_digits(certificate("bank"), false_shop)
    at_shop = safety_digits(false_bank, certificate("shop"))
    honest = safety_digits(certificate("bank"), certificate("shop"))
    assert len({at_bank, at_shop, honest}) == 3


def test_names_belong_to_the_digits():
    """The same two keys under exchanged names are another pair."""
    bank, shop = certificate("bank"), certificate("shop")
    as_shop = Certificate("shop", bank.pem, bank.fingerprint, bank.begins, bank.expires)
    as_bank = Certificate("bank", shop.pem, shop.fingerprint, shop.begins, shop.expires)
    assert safety_digits(as_shop, as_bank) != safety_digits(bank, shop)
