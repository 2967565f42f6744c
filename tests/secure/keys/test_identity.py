"""Keys, certificates and fingerprints."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from vertikal.errors import CertificateExpired, CertificateMismatch, InputError
from vertikal.secure.keys.identity import (
    Certificate,
    Identity,
    fingerprint_of,
    is_locked,
    server_name,
)


@pytest.fixture(scope="module")
def bank():
    return Identity.create("bank")


def files(folder):
    return folder / "k.key", folder / "k.crt"


def test_an_identity_comes_back_from_its_files(bank, tmp_path):
    bank.save(*files(tmp_path))
    again = Identity.load(*files(tmp_path))
    assert again.certificate == bank.certificate
    assert files(tmp_path)[0].stat().st_mode & 0o777 == 0o600
    bank.certificate.verify(b"words", again.sign(b"words"))
    assert "PRIVATE" not in repr(again)


@pytest.mark.parametrize("name", ["größer ≥ 漢字", "x" * 64, "with space", "a/b"])
def test_every_printable_name_is_carried(name):
    identity = Identity.create(name)
    assert identity.name == Certificate.parse(identity.certificate.pem).name == name
    assert server_name(name).isascii()


@pytest.mark.parametrize("name", ["", "x" * 65, "new\nline"])
def test_other_names_are_refused(name):
    with pytest.raises(InputError, match="name must be 1 to 64 printable characters"):
        Identity.create(name)


def test_fingerprints_are_of_keys(bank):
    assert bank.certificate.fingerprint.startswith("sha256:")
    assert len(bank.certificate.fingerprint) == 7 + 64
    assert Identity.create("bank").certificate.fingerprint != bank.certificate.fingerprint


KINDS = {
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
    "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}


def other_kind(kind, name):
    """A key that is not of P-256, and a certificate over it, signed by itself."""
    key = KINDS[kind]()
    return key, foreign(key, key, [name])


@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_another_kind_are_refused_by_name(bank, tmp_path, kind):
    key, pem = other_kind(kind, "bank")
    with pytest.raises(CertificateMismatch, match="over a key of P-256, got another key"):
        Certificate.parse(pem)
    with pytest.raises(CertificateMismatch, match="got another key"):
        fingerprint_of(key.public_key())
    good = bank.certificate
    shown = Certificate("bank", pem, good.fingerprint, good.begins, good.expires)
    with pytest.raises(CertificateMismatch, match="got another key"):
        shown.verify(b"words", bank.sign(b"words"))
    bank.save(*files(tmp_path))
    files(tmp_path)[0].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    with pytest.raises(CertificateMismatch, match="got another key"):
        Identity.load(*files(tmp_path))


def test_a_signature_by_another_key_is_refused(bank):
    with pytest.raises(CertificateMismatch, match=r"not signed by the key .* lists"):
        bank.certificate.verify(b"words", Identity.create("bank").sign(b"words"))
    with pytest.raises(CertificateMismatch):
        bank.certificate.verify(b"other words", bank.sign(b"words"))


def test_time_is_checked():
    now = datetime.now(UTC)
    good = Identity.create("b", days=2).certificate
    good.check_time()
    with pytest.raises(CertificateExpired, match=r"'b' expired on \d{4}-.*keygen b`"):
        good.check_time(now + timedelta(days=3))
    with pytest.raises(CertificateExpired, match=r"is not valid before .* compare the clocks"):
        good.check_time(now - timedelta(days=1))


def test_files_that_are_no_identity(bank, tmp_path):
    key, certificate = files(tmp_path)
    with pytest.raises(InputError, match=r"certificate file 'k\.crt' cannot be read"):
        Identity.load(key, certificate)
    bank.save(key, certificate)
    key.chmod(0o640)
    with pytest.raises(InputError, match="readable by its owner only, got mode 640"):
        Identity.load(key, certificate)
    key.chmod(0o600)
    Identity.create("bank").save(key, tmp_path / "other.crt")
    with pytest.raises(CertificateMismatch, match="is not the key of the certificate of 'bank'"):
        Identity.load(key, certificate)
    key.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="must hold a private key"):
        Identity.load(key, certificate)


def foreign(issuer_key, key, names):
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, n) for n in names]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, n) for n in names]))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.now(UTC))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .sign(
            issuer_key,
            None if isinstance(issuer_key, ed25519.Ed25519PrivateKey) else hashes.SHA256(),
        )
        .public_bytes(serialization.Encoding.PEM)
    )


def test_certificates_of_other_making_are_refused(bank):
    one, two = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    wrong = [b"", b"nonsense", bank.private_pem, foreign(one, two, ["x"]), foreign(one, one, [])]
    for pem in wrong:
        with pytest.raises(InputError, match="one that `vertikal keygen` made"):
            Certificate.parse(pem)


def test_a_key_under_a_passphrase(bank, tmp_path):
    key, certificate = files(tmp_path)
    bank.save(key, certificate, b"correct horse")
    assert b"ENCRYPTED" in key.read_bytes()
    assert key.stat().st_mode & 0o777 == 0o600
    again = Identity.load(key, certificate, b"correct horse")
    bank.certificate.verify(b"words", again.sign(b"words"))
    with pytest.raises(InputError, match="kept under a passphrase; give it in VERTIKAL_PASSPHRASE"):
        Identity.load(key, certificate)
    with pytest.raises(InputError, match=r"must hold a private key .* that this passphrase opens"):
        Identity.load(key, certificate, b"wrong horse")
    # A passphrase that a key does not need does no harm.
    bank.save(key, certificate)
    assert Identity.load(key, certificate, b"any").name == "bank"


def test_a_key_is_seen_to_be_under_a_passphrase(bank, tmp_path):
    key, certificate = files(tmp_path)
    assert not is_locked(key)
    bank.save(key, certificate)
    assert not is_locked(key)
    bank.save(key, certificate, b"correct horse")
    assert is_locked(key)
