"""TLS between a server and its clients: version 1.3, and the server's key is pinned.

Nobody vouches for the server's certificate; a client compares the fingerprint of its public key
with the one that it was given. Clients show who they are afterwards, by their tickets.
"""

from __future__ import annotations

import ssl

from vertikal.errors import CertificateUnknown
from vertikal.secure.keys.credentials import key_as_file
from vertikal.secure.keys.identity import Certificate, Identity


def server_context(identity: Identity) -> ssl.SSLContext:
    """Make the context of the listening side."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    with key_as_file(identity.private_pem + identity.certificate.pem) as file:
        context.load_cert_chain(file)
    return context


def client_context() -> ssl.SSLContext:
    """Make the context of the dialling side, which then asks `check_server`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def check_server(certificate: bytes | None, fingerprint: str) -> None:
    """Refuse a server that has shown another key than the pinned one, before anything is sent.

    The handshake has proved that the server has the private half of the key in ``certificate``.
    """
    shown = Certificate.parse(ssl.DER_cert_to_PEM_cert(certificate or b"").encode())
    if shown.fingerprint != fingerprint:
        raise CertificateUnknown(
            f"the server showed the key {shown.fingerprint}, expected {fingerprint}; nothing was "
            "sent"
        )
    shown.check_time()
