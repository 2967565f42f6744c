"""Credentials for a mesh between machines: this party's identity, and everybody's certificates.

The keys of a run are X25519, fresh in each run and signed by the identities, so a relay that passes
them on can neither read what two parties say to each other nor put itself between them.
"""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from vertikal.errors import (
    AgreementError,
    CertificateExpired,
    CertificateMismatch,
    CertificateUnknown,
    IdentityError,
    InputError,
    PadReused,
    PartyUnknown,
    SecrecyError,
)
from vertikal.secure.keys.identity import Certificate, Identity, server_name
from vertikal.secure.keys.prg import encode_texts, fresh_key

PROBE_SECONDS = 5.0


class EncryptedChannel:
    """AES-256-GCM with one key each way; lane and number make the nonce, so none comes twice.

    The mesh numbers the messages of a lane one by one; a message that it sends again is the same
    encrypted bytes. A number that is not larger than all before it is refused. Each run has new
    keys.
    """

    def __init__(self, outgoing: bytes, incoming: bytes) -> None:
        self._out = AESGCM(outgoing)
        self._in = AESGCM(incoming)
        self._numbers: dict[int, int] = {}

    def encrypt(self, lane: int, number: int, bound: bytes, data: bytes | memoryview) -> bytes:
        if number <= self._numbers.get(lane, -1):
            raise PadReused(f"message {number} of lane {lane} has been encrypted already; not sent")
        self._numbers[lane] = number
        return self._out.encrypt(_nonce(lane, number), data, bound)

    def decrypt(self, lane: int, number: int, bound: bytes, data: bytes | memoryview) -> bytes:
        try:
            return self._in.decrypt(_nonce(lane, number), data, bound)
        except InvalidTag:
            raise SecrecyError(
                "it was changed on its way, or encrypted for somebody else; the relay is to blame"
            ) from None


class Credentials:
    """One party's identity and the certificates of its federation, for one run."""

    def __init__(
        self,
        identity: Identity,
        certificates: Mapping[str, Certificate],
        earlier: Mapping[str, Sequence[Certificate]] | None = None,
    ) -> None:
        self._identity = identity
        self._certificates = dict(certificates)
        self._earlier = dict(earlier or {})
        listed = self._listed(identity.name)
        if listed.fingerprint != identity.certificate.fingerprint:
            raise CertificateMismatch(
                f"{identity.name}: the federation file lists the key {listed.fingerprint} for "
                f"{identity.name!r}, got {identity.certificate.fingerprint}; send the others the "
                "new entry, or use the key that is listed"
            )
        for certificate in (identity.certificate, *self._certificates.values()):
            certificate.check_time()
        self._secret = X25519PrivateKey.from_private_bytes(fresh_key())
        self.public_key = self._secret.public_key().public_bytes_raw()

    def digest(self, parties: tuple[str, ...]) -> str:
        texts = [text for name in parties for text in (name, self._listed(name).fingerprint)]
        return hashlib.sha256(encode_texts(*texts)).hexdigest()

    def sign(self, message: bytes) -> bytes:
        return self._identity.sign(message)

    def verify(self, peer: str, message: bytes, signature: bytes) -> None:
        self._listed(peer).verify(message, signature)

    def verify_kept(self, peer: str, message: bytes, signature: bytes) -> None:
        """Verify a signature in this party's own records, by any key that ``peer`` has had.

        It was verified when it came. Only what comes now has to be signed by the key of today.
        """
        for certificate in self._earlier.get(peer, ()):
            with suppress(CertificateMismatch):
                certificate.verify(message, signature)
                return
        self.verify(peer, message, signature)

    def channel(self, peer: str, public_key: bytes, bound: bytes) -> EncryptedChannel:
        try:
            shared = self._secret.exchange(X25519PublicKey.from_public_bytes(public_key))
        except ValueError as error:
            raise AgreementError(f"the public key of {peer} is unusable: {error}") from None

        def key(sender: str, receiver: str) -> bytes:
            info = encode_texts("vertikal", "relay", sender, receiver)
            return HKDF(hashes.SHA256(), 32, salt=hashlib.sha256(bound).digest(), info=info).derive(
                shared
            )

        me = self._identity.name
        return EncryptedChannel(key(me, peer), key(peer, me))

    def private_pem(self) -> bytes:
        return self._identity.private_pem

    def certificate_pem(self) -> bytes:
        return self._identity.certificate.pem

    def trusted_pem(self, peers: tuple[str, ...]) -> bytes:
        return b"".join(self._listed(name).pem for name in peers)

    def server_name(self, peer: str) -> str:
        return server_name(peer)

    def recognise(self, certificate: bytes, claimed: str) -> None:
        listed = self._listed(claimed)
        try:
            shown = Certificate.parse(certificate)
        except (InputError, CertificateMismatch) as error:
            raise CertificateMismatch(
                f"what was shown for {claimed!r} is not the certificate that the federation file "
                f"lists, {listed.fingerprint}: {error}"
            ) from None
        if shown.fingerprint == listed.fingerprint:
            return
        owners = [
            name for name, one in self._certificates.items() if one.fingerprint == shown.fingerprint
        ]
        if owners:
            raise CertificateMismatch(
                f"{owners[0]!r} showed its certificate under the name {claimed!r}; a certificate "
                "is good for its own name only"
            )
        raise CertificateUnknown(
            f"the certificate shown for {claimed!r} has the fingerprint {shown.fingerprint}, the "
            f"federation file lists {listed.fingerprint}"
        )

    def explain(self, address: str, peer: str) -> IdentityError | None:
        """Try TLS by other means than the mesh's, only to see what is wrong with a certificate.

        First without a certificate of mine, to look at the one that is shown; then, if that is the
        listed one, as the mesh does it: verified, and with mine. Nothing is sent either time.
        """
        try:
            with self._connected(address, _looking(), None) as connection:
                raw = connection.getpeercert(binary_form=True) or b""
            refusal = self._look(ssl.DER_cert_to_PEM_cert(raw).encode(), peer)
            if refusal is not None:
                return refusal
            with self._connected(address, self._verifying(peer), server_name(peer)) as connection:
                # A listening party that accepts my certificate speaks first; one that does not
                # hangs up without a word.
                return None if self._hears(connection) else self._refused(address, peer)
        except ssl.SSLCertVerificationError as error:
            return CertificateMismatch(
                f"{peer} at {address} shows another certificate over its listed key "
                f"({error.verify_message}); replace its entry in the federation file by the new one"
            )
        except OSError:
            return None

    @staticmethod
    @contextmanager
    def _connected(
        address: str, context: ssl.SSLContext, name: str | None
    ) -> Iterator[ssl.SSLSocket]:
        host, _, port = address.rpartition(":")
        with (
            socket.create_connection((host.strip("[]"), int(port)), PROBE_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=name) as connection,
        ):
            yield connection

    def _verifying(self, peer: str) -> ssl.SSLContext:
        """Make a TLS context as the mesh does: only the listed certificate of ``peer`` will do."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_alpn_protocols(["h2"])
        context.load_verify_locations(cadata=self._listed(peer).pem.decode())
        with key_as_file(self._identity.private_pem + self._identity.certificate.pem) as file:
            context.load_cert_chain(file)
        return context

    def _look(self, pem: bytes, peer: str) -> IdentityError | None:
        try:
            self.recognise(pem, peer)
            Certificate.parse(pem).check_time()
        except IdentityError as error:
            return error
        return None

    def _refused(self, address: str, peer: str) -> IdentityError:
        mine = self._identity.certificate
        try:
            mine.check_time()
        except CertificateExpired as error:
            return error
        return CertificateUnknown(
            f"{peer} at {address} hangs up on the certificate of {mine.name!r}: its federation "
            f"file does not list {mine.fingerprint}, or its clock is wrong; compare the files"
        )

    @staticmethod
    def _hears(connection: ssl.SSLSocket) -> bool:
        try:
            return bool(connection.recv(1))
        except OSError:
            return False

    def _listed(self, name: str) -> Certificate:
        if name not in self._certificates:
            raise PartyUnknown(
                f"{name!r} is not in the federation file; listed are {sorted(self._certificates)}"
            )
        return self._certificates[name]


def _looking() -> ssl.SSLContext:
    """Make a TLS context that accepts any certificate: it is judged afterwards, nothing is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context


@contextmanager
def key_as_file(pem: bytes) -> Iterator[str]:
    """Give a private key the name of a file, for a library that reads nothing else.

    Where the system has files that lie in memory only, the key does not touch a disk.
    """
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("key", os.MFD_CLOEXEC)
        with os.fdopen(number, "wb") as file:
            file.write(pem)
            file.flush()
            yield f"/proc/self/fd/{number}"
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "key")
        path.touch(0o600)
        path.write_bytes(pem)
        yield str(path)


def _nonce(lane: int, number: int) -> bytes:
    return lane.to_bytes(4, "big") + number.to_bytes(8, "big")
