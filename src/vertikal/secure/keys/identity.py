"""Identity of a party: a key pair on the curve P-256 and a self-signed certificate over it.

Nobody vouches for a certificate; the federation file lists it, and it is pinned by the fingerprint
of its public key. P-256 and not Ed25519, because TLS libraries accept it everywhere.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from vertikal.errors import CertificateExpired, CertificateMismatch, InputError

DAYS = 825
"""Days for which a certificate is good; a party renews it before."""

_BEFORE = timedelta(hours=1)
"""Clocks differ: a certificate is good a little before it was made."""

_SIGNATURE = ec.ECDSA(hashes.SHA256())
_SCHEME = "sha256:"

_LOCKED = b"ENCRYPTED"
"""Words in the first line of a key file under a passphrase."""


def server_name(name: str) -> str:
    """Write a party's name as a host name of fixed form, which TLS can compare."""
    return f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.party.vertikal"


@dataclass(frozen=True)
class Certificate:
    """The public half of an identity."""

    name: str
    pem: bytes = field(repr=False)
    fingerprint: str
    begins: datetime
    expires: datetime

    @classmethod
    def parse(cls, pem: bytes) -> Certificate:
        """Read a certificate that `Identity.create` made.

        Raise InputError for anything else, CertificateMismatch for a certificate over another kind
        of key.
        """
        try:
            parsed = x509.load_pem_x509_certificate(pem)
            common = parsed.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
            name = str(common[0].value)
            parsed.verify_directly_issued_by(parsed)
        except (ValueError, IndexError, TypeError, InvalidSignature) as error:
            raise InputError(
                "certificate must be one that `vertikal keygen` made, got something else "
                f"({type(error).__name__})"
            ) from None
        return cls(
            name,
            parsed.public_bytes(serialization.Encoding.PEM),
            fingerprint_of(parsed.public_key()),
            parsed.not_valid_before_utc,
            parsed.not_valid_after_utc,
        )

    @classmethod
    def load(cls, file: Path) -> Certificate:
        """Read a certificate file."""
        return cls.parse(_read(file, "certificate"))

    def check_time(self, now: datetime | None = None) -> None:
        """Raise CertificateExpired outside the time for which it was made."""
        now = now or datetime.now(UTC)
        if now > self.expires:
            raise CertificateExpired(
                f"certificate of {self.name!r} expired on {self.expires:%Y-%m-%d %H:%M} UTC; "
                f"its owner runs `vertikal keygen {self.name}` and sends the others the new entry"
            )
        if now < self.begins:
            raise CertificateExpired(
                f"certificate of {self.name!r} is not valid before {self.begins:%Y-%m-%d %H:%M} "
                "UTC; compare the clocks of the two machines"
            )

    def verify(self, message: bytes, signature: bytes) -> None:
        """Raise CertificateMismatch unless the key of this certificate signed ``message``."""
        key = x509.load_pem_x509_certificate(self.pem).public_key()
        try:
            _on_curve(key).verify(signature, message, _SIGNATURE)
        except InvalidSignature:
            raise CertificateMismatch(
                f"a message in the name of {self.name!r} was not signed by the key that the "
                "federation file lists for it"
            ) from None


def fingerprint_of(key: object) -> str:
    """SHA-256 of a P-256 public key in its standard form: the same for all certificates over it."""
    raw = _on_curve(key).public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return _SCHEME + hashlib.sha256(raw).hexdigest()


def _on_curve(key: object) -> ec.EllipticCurvePublicKey:
    """Return the key if it is one of P-256, the only ones that `Identity.create` makes."""
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    kind = type(key).__name__.lstrip("_").removesuffix("PublicKey")
    raise CertificateMismatch(
        "certificate must be one that `vertikal keygen` made, over a key of P-256, got another "
        f"key ({kind})"
    )


@dataclass(frozen=True)
class Identity:
    """A certificate with its private key."""

    certificate: Certificate
    private_pem: bytes = field(repr=False)
    _key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def name(self) -> str:
        return self.certificate.name

    @classmethod
    def create(cls, name: str, days: float = DAYS, now: datetime | None = None) -> Identity:
        """Make a fresh key pair and its certificate, good for ``days`` from ``now`` on."""
        if not name.isprintable() or not 0 < len(name) <= 64:
            raise InputError.of("name", "1 to 64 printable characters", name)
        key = ec.generate_private_key(ec.SECP256R1())
        now = now or datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        built = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BEFORE)
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(server_name(name))]), False)
            .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
            .sign(key, hashes.SHA256())
        )
        pem = built.public_bytes(serialization.Encoding.PEM)
        return cls(Certificate.parse(pem), _private_bytes(key), key)

    @classmethod
    def load(
        cls, key_file: Path, certificate_file: Path, passphrase: bytes | None = None
    ) -> Identity:
        """Read the identity in these two files; refuse a key that others can read."""
        certificate = Certificate.load(certificate_file)
        raw = _read(key_file, "key")
        mode = key_file.stat().st_mode & 0o077
        if mode:
            raise InputError(
                f"key file {key_file.name!r} must be readable by its owner only, got mode "
                f"{key_file.stat().st_mode & 0o777:o}; run `chmod 600` on it"
            )
        locked = _LOCKED in raw
        if locked and passphrase is None:
            raise InputError(
                f"key file {key_file.name!r} is kept under a passphrase; give it in "
                "VERTIKAL_PASSPHRASE, or name a passphrase_file in the party file"
            )
        try:
            key = serialization.load_pem_private_key(raw, passphrase if locked else None)
        except (ValueError, TypeError):
            wrong = " that this passphrase opens" if locked else ""
            raise InputError(
                f"key file {key_file.name!r} must hold a private key (PEM){wrong}"
            ) from None
        if fingerprint_of(key.public_key()) != certificate.fingerprint:
            raise CertificateMismatch(
                f"key file {key_file.name!r} is not the key of the certificate of "
                f"{certificate.name!r}; both are made by one `vertikal keygen`"
            )
        own = cast(ec.EllipticCurvePrivateKey, key)  # as its fingerprint has shown
        return cls(certificate, _private_bytes(own), own)

    def save(self, key_file: Path, certificate_file: Path, passphrase: bytes | None = None) -> None:
        """Write both; the key is readable by its owner only from its first byte on.

        With a passphrase it is encrypted as well (PKCS 8).
        """
        _write_anew(certificate_file, self.certificate.pem, 0o666)
        key = self.private_pem if not passphrase else _locked_bytes(self._key, passphrase)
        _write_anew(key_file, key, 0o600)

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message, _SIGNATURE)


def _private_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def is_locked(key_file: Path) -> bool:
    """Tell whether a key file is there and kept under a passphrase."""
    try:
        return _LOCKED in key_file.read_bytes()
    except OSError:
        return False


def _locked_bytes(key: ec.EllipticCurvePrivateKey, passphrase: bytes) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase),
    )


def _write_anew(path: Path, content: bytes, mode: int) -> None:
    """Write a file of its own, whatever link somebody else has put in its place."""
    path.unlink(missing_ok=True)
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(number, "wb") as file:
        file.write(content)


def _read(file: Path, what: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(
            f"{what} file {file.name!r} cannot be read ({error.strerror}); `vertikal keygen` "
            "makes it"
        ) from None
