"""The interface of a mesh to cryptography; `secure.keys.credentials` implements it.

A mesh moves bytes and knows no cryptography. It is handed an object that signs, verifies, encrypts
and decrypts, and that names the party behind a certificate.
"""

from __future__ import annotations

from typing import Protocol

from vertikal.errors import SecrecyError


class Channel(Protocol):
    """The end-to-end encryption of one pair, for one run."""

    def encrypt(self, lane: int, number: int, bound: bytes, data: bytes | memoryview) -> bytes:
        """Encrypt ``data``; a (lane, number) is used for one message only."""

    def decrypt(self, lane: int, number: int, bound: bytes, data: bytes | memoryview) -> bytes:
        """Decrypt ``data``; SecrecyError if a bit of it or of ``bound`` was changed."""


class Security(Protocol):
    """One party's identity and its knowledge of the others', for one run."""

    public_key: bytes
    """Fresh in this run; the keys of pairs are agreed from it."""

    def digest(self, parties: tuple[str, ...]) -> str:
        """Digest of everybody's name and fingerprint, which must be the same at all parties."""

    def sign(self, message: bytes) -> bytes: ...

    def verify(self, peer: str, message: bytes, signature: bytes) -> None:
        """Raise CertificateMismatch unless ``peer``'s own key signed ``message``."""

    def channel(self, peer: str, public_key: bytes, bound: bytes) -> Channel:
        """Agree on the encryption with ``peer``, whose key of this run is ``public_key``."""


class NetworkSecurity(Security, Protocol):
    """The security of a network mesh, with the certificates that TLS needs."""

    def private_pem(self) -> bytes: ...

    def certificate_pem(self) -> bytes: ...

    def trusted_pem(self, peers: tuple[str, ...]) -> bytes:
        """The certificates of these parties, the only ones that TLS is to accept."""

    def server_name(self, peer: str) -> str:
        """The name for which ``peer``'s certificate is made out, as TLS compares it."""

    def recognise(self, certificate: bytes, claimed: str) -> None:
        """Raise an IdentityError unless this certificate (PEM) is listed for ``claimed``."""

    def explain(self, address: str, peer: str) -> Exception | None:
        """Find the certificate because of which TLS with ``peer`` at ``address`` fails, if any."""


class NoSecurity:
    """No security: for a mesh inside one machine or cluster, whose transport knows the senders."""

    public_key = b""

    def digest(self, parties: tuple[str, ...]) -> str:
        return "/".join(parties)

    def sign(self, message: bytes) -> bytes:
        return b""

    def verify(self, peer: str, message: bytes, signature: bytes) -> None:
        """Believe everything."""

    def channel(self, peer: str, public_key: bytes, bound: bytes) -> Channel:
        raise SecrecyError(f"nothing can be encrypted for {peer} without an identity")
