"""What a mesh between machines asks of its credentials; `secure/credentials` has them.

A mesh moves bytes and knows no cryptography. It is handed an object that signs, verifies, seals and
opens, and that names the party behind a certificate.
"""

from __future__ import annotations

from typing import Protocol

from vertikal.errors import SecrecyError


class Channel(Protocol):
    """The end-to-end encryption of one pair, for one run."""

    def encrypt(self, lane: int, number: int, bound: bytes, data: bytes | memoryview) -> bytes:
        """``data`` encrypted; a (lane, number) is used for one message only."""

    def decrypt(self, lane: int, number: int, bound: bytes, data: bytes | memoryview) -> bytes:
        """The data again; SecrecyError if a bit of it or of ``bound`` was changed."""


class Security(Protocol):
    """One party's identity and its knowledge of the others', for one run."""

    public_key: bytes
    """Fresh in this run; what the pairs' keys are agreed from."""

    def digest(self, parties: tuple[str, ...]) -> str:
        """What all parties must share: names and fingerprints of everybody."""

    def sign(self, message: bytes) -> bytes: ...

    def verify(self, peer: str, message: bytes, signature: bytes) -> None:
        """CertificateMismatch unless ``peer``'s own key signed ``message``."""

    def channel(self, peer: str, public_key: bytes, bound: bytes) -> Channel:
        """The encryption shared with ``peer``, whose key of this run is ``public_key``."""


class NetworkSecurity(Security, Protocol):
    """The same with what TLS needs."""

    def private_pem(self) -> bytes: ...

    def certificate_pem(self) -> bytes: ...

    def trusted_pem(self, peers: tuple[str, ...]) -> bytes:
        """The certificates of these parties, which TLS is to accept and no others."""

    def server_name(self, peer: str) -> str:
        """The name for which ``peer``'s certificate is made out, as TLS compares it."""

    def recognise(self, certificate: bytes, claimed: str) -> None:
        """An IdentityError unless this certificate (PEM) is the one listed for ``claimed``."""

    def explain(self, address: str, peer: str) -> Exception | None:
        """Why TLS with ``peer`` at ``address`` fails, if it does because of a certificate."""


class NoSecurity:
    """For a mesh inside one machine or cluster whose own transport says who sent what."""

    public_key = b""

    def digest(self, parties: tuple[str, ...]) -> str:
        return "/".join(parties)

    def sign(self, message: bytes) -> bytes:
        return b""

    def verify(self, peer: str, message: bytes, signature: bytes) -> None:
        """Everything is believed."""

    def channel(self, peer: str, public_key: bytes, bound: bytes) -> Channel:
        raise SecrecyError(f"nothing can be encrypted for {peer} without an identity")
