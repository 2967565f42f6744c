"""Identity of a party's workers towards those of other parties, for one pass.

A party makes a key pair and a certificate for each pass, and tells the others the certificate over
the mesh, which vouches for it: the mesh delivers a name's messages from that party, in this job. A
worker accepts TLS by the told certificates only. So a link is bound to the job and to both parties,
and the key that a party is known by to its federation never reaches a worker.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from vertikal.errors import CertificateUnknown
from vertikal.secure.keys.credentials import key_as_file
from vertikal.secure.keys.identity import Certificate, Identity, server_name

DAYS = 30.0
"""Days that a certificate of workers is good for: no pass takes longer."""


@dataclass(frozen=True)
class LinkIdentity:
    """Key and certificate of one party's workers, and the certificates of others that they trust.

    It can be sent to workers.
    """

    me: str
    certificate: bytes  # PEM
    private_key: bytes = field(repr=False)  # PEM
    trusted: Mapping[str, bytes] = field(default_factory=dict)  # party: certificate (PEM)

    @classmethod
    def create(cls, me: str) -> LinkIdentity:
        """Make fresh keys."""
        made = Identity.create(me, DAYS)
        return cls(me, made.certificate.pem, made.private_pem)

    def trusting(self, certificates: Mapping[str, bytes]) -> LinkIdentity:
        """Return the same identity with the certificates of others, as the mesh delivered them.

        Raise CertificateUnknown for one that is made out for another name, or is none.
        """
        for name, pem in certificates.items():
            found = Certificate.parse(pem)
            if found.name != name:
                raise CertificateUnknown(
                    f"{name} sent a certificate of {found.name!r} for its workers; a certificate "
                    "is good for its own name only"
                )
        return LinkIdentity(self.me, self.certificate, self.private_key, dict(certificates))

    def listening(self) -> ssl.SSLContext:
        """Make the TLS context of a worker that is dialled: only trusted certificates will do."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        return self._ready(context, self.trusted.values())

    def dialling(self, peer: str) -> ssl.SSLContext:
        """Make the TLS context of a worker that dials one of ``peer``."""
        return self._ready(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), [self.trusted[peer]])

    def server_name(self, peer: str) -> str:
        """Return the name for which the certificate of ``peer`` is made out."""
        return server_name(peer)

    def owner(self, certificate: bytes) -> str:
        """Return the party that a certificate (DER), which TLS has accepted, belongs to."""
        shown = ssl.DER_cert_to_PEM_cert(certificate).encode()
        found = Certificate.parse(shown)
        for name, pem in self.trusted.items():
            if Certificate.parse(pem).fingerprint == found.fingerprint:
                return name
        raise CertificateUnknown(f"nobody in this pass has the certificate {found.fingerprint}")

    def _ready(self, context: ssl.SSLContext, trusted: object) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        for pem in trusted:  # type: ignore[attr-defined]
            context.load_verify_locations(cadata=pem.decode())
        with key_as_file(self.private_key + self.certificate) as file:
            context.load_cert_chain(file)
        return context
