"""The federation file, and everything that can be wrong with it."""

from __future__ import annotations

import pytest

from tests.conformance.networks import identity
from vertikal.errors import CertificateMismatch, InputError, NameTaken, PartyUnknown
from vertikal.node.config.federation_file import FederationFile, Member, entry_of


def written(folder, *entries):
    path = folder / "federation.toml"
    path.write_text("\n".join(entries))
    return path


def entry(name, listens=None):
    return entry_of(identity(name), listens)


def test_entries_one_after_the_other_are_a_federation(tmp_path):
    path = written(tmp_path, entry("bank", "bank.example:7700"), entry("größe"), entry("it's"))
    federation = FederationFile.load(path)
    assert federation.names == ("bank", "größe", "it's")
    assert federation.addresses() == {"bank": "bank.example:7700", "größe": None, "it's": None}
    mine = federation.credentials(identity("größe"))
    mine.recognise(identity("bank").certificate.pem, "bank")
    with pytest.raises(PartyUnknown, match="'zoe' is not in the federation file"):
        federation.credentials(identity("zoe"))


@pytest.mark.parametrize(
    ("entries", "kind", "said"),
    [
        (["a", "a"], NameTaken, "two entries claim the name 'a'"),
        (["b"], InputError, "one party at least must listen"),
    ],
)
def test_entries_that_do_not_fit(tmp_path, entries, kind, said):
    path = written(tmp_path, *(entry(name, "h:1" if name == "a" else None) for name in entries))
    with pytest.raises(kind, match=said):
        FederationFile.load(path)


def test_certificates_that_do_not_fit(tmp_path):
    good, other = entry("a", "h:1"), entry("b")
    renamed = good.replace('name = "a"', 'name = "z"')
    with pytest.raises(CertificateMismatch, match="entry of 'z' has a certificate made out to 'a'"):
        FederationFile.load(written(tmp_path, renamed))
    swapped = good.replace(
        identity("a").certificate.fingerprint, identity("b").certificate.fingerprint
    )
    with pytest.raises(CertificateMismatch, match="certificate of 'a' has the fingerprint"):
        FederationFile.load(written(tmp_path, swapped, other))
    with pytest.raises(InputError, match="`vertikal keygen` made"):
        FederationFile.load(written(tmp_path, good.replace("BEGIN", "BEGUN")))


@pytest.mark.parametrize(
    "text", ["party = 3", "[[party]]\nname = 'a'", "not toml", "[[party]]\nx = 1", "party = ["]
)
def test_files_of_another_form(tmp_path, text):
    with pytest.raises(InputError, match=r"federation file 'federation\.toml'"):
        FederationFile.load(written(tmp_path, text))


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"'gone\.toml' cannot be read: No such file"):
        FederationFile.load(tmp_path / "gone.toml")


def test_an_address_that_is_none(tmp_path):
    with pytest.raises(InputError, match="address must be host:port, got 'bank'"):
        FederationFile.load(written(tmp_path, entry("a", "bank")))


@pytest.mark.parametrize("name", ["", "x" * 65, "bank\x1b[2K", "bank\nshop"])
def test_names_that_cannot_be_printed(name):
    member = Member(name, "", "", "h:1")
    with pytest.raises(InputError, match="federation file: name must be 1 to 64 printable"):
        FederationFile.of((member,))
