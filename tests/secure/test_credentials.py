"""Credentials: who is recognised, what is sealed, and why TLS fails."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from tests.conformance.networks import certificates, credentials, free_port, identity
from vertikal.errors import (
    AgreementError,
    CertificateExpired,
    CertificateMismatch,
    SecrecyError,
    UnknownCertificate,
)
from vertikal.secure.credentials import Credentials
from vertikal.secure.identity import Certificate, Identity


def pair():
    a, b = credentials("a", "ab"), credentials("b", "ab")
    return a.channel("b", b.public_key, b"hellos"), b.channel("a", a.public_key, b"hellos")


def test_what_one_seals_the_other_opens():
    a, b = pair()
    sealed = a.seal(0, 7, b"head", b"words")
    assert b.open(0, 7, b"head", sealed) == b"words"
    assert b"words" not in sealed
    answer = b.seal(0, 7, b"head", b"words")
    assert answer != sealed
    assert a.open(0, 7, b"head", answer) == b"words"


@pytest.mark.parametrize(
    ("lane", "number", "bound", "change"),
    [(1, 7, b"head", 0), (0, 8, b"head", 0), (0, 7, b"hEad", 0), (0, 7, b"head", 1)],
)
def test_any_change_is_found(lane, number, bound, change):
    a, b = pair()
    sealed = bytearray(a.seal(0, 7, b"head", b"words"))
    sealed[2] ^= change
    with pytest.raises(SecrecyError, match="changed on its way"):
        b.open(lane, number, bound, bytes(sealed))


def test_keys_belong_to_one_run_one_pair_and_one_exchange():
    a, b, c = (credentials(name, "abc") for name in "abc")
    sealed = a.channel("b", b.public_key, b"x").seal(0, 0, b"", b"words")
    others = [
        b.channel("a", a.public_key, b"y"),
        b.channel("c", a.public_key, b"x"),
        c.channel("a", a.public_key, b"x"),
        credentials("b", "abc").channel("a", a.public_key, b"x"),
        a.channel("b", b.public_key, b"x"),
    ]
    for channel in others:
        with pytest.raises(SecrecyError):
            channel.open(0, 0, b"", sealed)


@pytest.mark.parametrize("key", [b"", b"short", bytes(32)])
def test_an_unusable_key_is_refused(key):
    with pytest.raises(AgreementError, match="public key of b is unusable"):
        credentials("a", "ab").channel("b", key, b"")


def test_who_is_recognised():
    mine = credentials("a", "abc")
    mine.recognise(identity("b").certificate.pem, "b")
    with pytest.raises(CertificateMismatch, match="'c' showed its certificate under the name 'b'"):
        mine.recognise(identity("c").certificate.pem, "b")
    with pytest.raises(UnknownCertificate, match="shown for 'b' has the fingerprint"):
        mine.recognise(Identity.create("b").certificate.pem, "b")


def test_signatures_are_checked_against_the_listed_key():
    a, b = credentials("a", "ab"), credentials("b", "ab")
    a.verify("b", b"words", b.sign(b"words"))
    with pytest.raises(CertificateMismatch):
        a.verify("b", b"words", a.sign(b"words"))


def test_an_identity_that_is_not_the_listed_one_is_refused():
    with pytest.raises(CertificateMismatch, match=r"lists the key sha256:.* for 'a', got sha256:"):
        Credentials(Identity.create("a"), certificates("ab"))


@pytest.mark.parametrize("expired", ["a", "b"])
def test_an_expired_certificate_is_refused_at_every_party(expired):
    old = Identity.create(expired, days=1, now=datetime.now(UTC) - timedelta(days=3))
    mine = old if expired == "a" else identity("a")
    with pytest.raises(CertificateExpired, match=f"certificate of '{expired}' has expired"):
        Credentials(mine, {**certificates("ab"), expired: old.certificate})


def test_the_digest_is_of_names_and_keys():
    mine = credentials("a", "abc")
    assert mine.digest(("a", "b")) == credentials("b", "abc").digest(("a", "b"))
    assert len({mine.digest(tuple(names)) for names in ("ab", "ba", "abc")}) == 3
    other = Credentials(
        identity("a"), {**certificates("ab"), "b": Identity.create("b").certificate}
    )
    assert mine.digest(("a", "b")) != other.digest(("a", "b"))


def serve_tls(identity, speak):
    """A TLS server for one connection that says one byte, or hangs up."""
    import ssl
    import tempfile
    from pathlib import Path

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "k"), Path(folder, "c")
        identity.save(*files)
        context.load_cert_chain(files[1], files[0])
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        plain, _ = listener.accept()
        # Whoever asks may hang up at any moment; that is none of this server's business.
        with (
            suppress(OSError),
            listener,
            plain,
            context.wrap_socket(plain, server_side=True) as connection,
        ):
            if speak:
                connection.sendall(b"x")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return f"127.0.0.1:{listener.getsockname()[1]}", thread


def explained(server, speak, mine=None):
    address, thread = serve_tls(server, speak)
    reason = (mine or credentials("b", "ab")).explain(address, "a")
    thread.join(5.0)
    return reason


def test_why_tls_fails(monkeypatch):
    assert explained(identity("a"), True) is None
    hung_up = explained(identity("a"), False)
    assert isinstance(hung_up, UnknownCertificate)
    assert "hangs up on the certificate of 'b'" in str(hung_up)
    shown = explained(Identity.create("a"), True)
    assert isinstance(shown, UnknownCertificate)
    assert "the certificate shown for 'a' has the fingerprint" in str(shown)
    mine = credentials("b", "ab")

    def expired(self, now=None):
        raise CertificateExpired("old")

    monkeypatch.setattr(Certificate, "check_time", expired)
    assert isinstance(explained(identity("a"), True, mine), CertificateExpired)
    monkeypatch.setattr(Credentials, "_look", lambda self, pem, peer: None)
    assert isinstance(explained(identity("a"), False, mine), CertificateExpired)
    assert mine.explain(f"127.0.0.1:{free_port()}", "a") is None


def test_a_connection_that_is_reset_was_refused_too():
    class Reset:
        def recv(self, count):
            raise ConnectionResetError

    assert not Credentials._hears(Reset())
