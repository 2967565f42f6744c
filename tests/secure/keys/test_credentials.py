"""Credentials: who is recognised, what is encrypted, and why TLS fails."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from tests.conformance.networks import certificates, credentials, identity
from tests.ports import free_port
from tests.secure.keys.test_identity import foreign, other_kind
from vertikal.errors import (
    AgreementError,
    CertificateExpired,
    CertificateMismatch,
    CertificateUnknown,
    PadReused,
    SecrecyError,
)
from vertikal.secure.keys.credentials import Credentials, key_as_file
from vertikal.secure.keys.identity import Certificate, Identity


def pair():
    a, b = credentials("a", "ab"), credentials("b", "ab")
    return a.channel("b", b.public_key, b"hellos"), b.channel("a", a.public_key, b"hellos")


def test_what_one_encrypts_the_other_opens():
    a, b = pair()
    encrypted = a.encrypt(0, 7, b"head", b"words")
    assert b.decrypt(0, 7, b"head", encrypted) == b"words"
    assert b"words" not in encrypted
    answer = b.encrypt(0, 7, b"head", b"words")
    assert answer != encrypted
    assert a.decrypt(0, 7, b"head", answer) == b"words"


def test_nothing_is_encrypted_twice_under_one_number():
    a, _ = pair()
    a.encrypt(0, 7, b"", b"words")
    a.encrypt(1, 7, b"", b"words")
    a.encrypt(0, 8, b"", b"words")
    for number in (8, 7, 0):
        with pytest.raises(PadReused, match=f"message {number} of lane 0 has been encrypted"):
            a.encrypt(0, number, b"", b"other words")


@pytest.mark.parametrize(
    ("lane", "number", "bound", "change"),
    [(1, 7, b"head", 0), (0, 8, b"head", 0), (0, 7, b"hEad", 0), (0, 7, b"head", 1)],
)
def test_any_change_is_found(lane, number, bound, change):
    a, b = pair()
    encrypted = bytearray(a.encrypt(0, 7, b"head", b"words"))
    encrypted[2] ^= change
    with pytest.raises(SecrecyError, match="changed on its way"):
        b.decrypt(lane, number, bound, bytes(encrypted))


def test_keys_belong_to_one_run_one_pair_and_one_exchange():
    a, b, c = (credentials(name, "abc") for name in "abc")
    encrypted = a.channel("b", b.public_key, b"x").encrypt(0, 0, b"", b"words")
    others = [
        b.channel("a", a.public_key, b"y"),
        b.channel("c", a.public_key, b"x"),
        c.channel("a", a.public_key, b"x"),
        credentials("b", "abc").channel("a", a.public_key, b"x"),
        a.channel("b", b.public_key, b"x"),
    ]
    for channel in others:
        with pytest.raises(SecrecyError):
            channel.decrypt(0, 0, b"", encrypted)


@pytest.mark.parametrize("key", [b"", b"short", bytes(32)])
def test_an_unusable_key_is_refused(key):
    with pytest.raises(AgreementError, match="public key of b is unusable"):
        credentials("a", "ab").channel("b", key, b"")


def test_who_is_recognised():
    mine = credentials("a", "abc")
    mine.recognise(identity("b").certificate.pem, "b")
    with pytest.raises(CertificateMismatch, match="'c' showed its certificate under the name 'b'"):
        mine.recognise(identity("c").certificate.pem, "b")
    with pytest.raises(CertificateUnknown, match="shown for 'b' has the fingerprint"):
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
    with pytest.raises(CertificateExpired, match=f"certificate of '{expired}' expired"):
        Credentials(mine, {**certificates("ab"), expired: old.certificate})


def test_the_digest_is_of_names_and_keys():
    mine = credentials("a", "abc")
    assert mine.digest(("a", "b")) == credentials("b", "abc").digest(("a", "b"))
    assert len({mine.digest(tuple(names)) for names in ("ab", "ba", "abc")}) == 3
    other = Credentials(
        identity("a"), {**certificates("ab"), "b": Identity.create("b").certificate}
    )
    assert mine.digest(("a", "b")) != other.digest(("a", "b"))


@contextmanager
def tls_server(key_pem, certificate_pem, speak=True):
    """A TLS server that says one byte to each who connects, or hangs up; its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with key_as_file(key_pem + certificate_pem) as file:
        context.load_cert_chain(file)
    listener = socket.create_server(("127.0.0.1", 0))
    shown = []

    def serve():
        while True:
            # Whoever asks may hang up at any moment; that is none of this server's business.
            with suppress(ssl.SSLError, ConnectionError):
                try:
                    plain, _ = listener.accept()
                except OSError:
                    return
                with plain, context.wrap_socket(plain, server_side=True) as connection:
                    shown.append(connection.getpeercert(binary_form=True))
                    if speak:
                        connection.sendall(b"x")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        # Closing alone would not wake a thread that waits in accept.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(20.0)
        assert not thread.is_alive()


def explained(server, speak=True, mine=None):
    with tls_server(server.private_pem, server.certificate.pem, speak) as address:
        return (mine or credentials("b", "ab")).explain(address, "a")


def test_why_tls_fails():
    assert explained(identity("a")) is None
    hung_up = explained(identity("a"), speak=False)
    assert isinstance(hung_up, CertificateUnknown)
    assert "hangs up on the certificate of 'b'" in str(hung_up)
    shown = explained(Identity.create("a"))
    assert isinstance(shown, CertificateUnknown)
    assert "the certificate shown for 'a' has the fingerprint" in str(shown)
    assert credentials("b", "ab").explain(f"127.0.0.1:{free_port()}", "a") is None


@pytest.mark.parametrize("old", ["a", "b"])
def test_a_certificate_that_expired_meanwhile_is_why_tls_fails(monkeypatch, old):
    """The other's is seen at once, and one's own when the other hangs up."""
    mine = credentials("b", "ab")

    def expired(self, now=None):
        if self.name == old:
            raise CertificateExpired(f"that of {old}")

    monkeypatch.setattr(Certificate, "check_time", expired)
    reason = explained(identity("a"), speak=False, mine=mine)
    assert isinstance(reason, CertificateExpired)
    assert str(reason) == f"that of {old}"


@pytest.mark.parametrize("kind", ["rsa", "p384", "ed25519"])
def test_a_peer_with_another_kind_of_key_is_refused_by_name(kind):
    key, pem = other_kind(kind, "a")
    with pytest.raises(CertificateMismatch, match=r"shown for 'a' is not .* got another key"):
        credentials("b", "ab").recognise(pem, "a")
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with tls_server(private, pem) as address:
        reason = credentials("b", "ab").explain(address, "a")
    assert isinstance(reason, CertificateMismatch)
    assert "got another key" in str(reason)


def test_another_certificate_over_the_listed_key_is_named():
    """The fingerprint is right, and TLS still does not accept it."""
    key = serialization.load_pem_private_key(identity("a").private_pem, None)
    again = foreign(key, key, ["a"])
    with tls_server(identity("a").private_pem, again) as address:
        reason = credentials("b", "ab").explain(address, "a")
    assert isinstance(reason, CertificateMismatch)
    assert "shows another certificate over its listed key" in str(reason)


def test_a_stranger_is_not_shown_my_certificate(monkeypatch):
    """An impostor at a party's address sees one connection, and no certificate on it."""
    chains = []
    load = ssl.SSLContext.load_cert_chain
    stranger = Identity.create("a")
    with tls_server(stranger.private_pem, stranger.certificate.pem) as address:
        monkeypatch.setattr(
            ssl.SSLContext, "load_cert_chain", lambda *a: chains.append(a) or load(*a)
        )
        assert credentials("b", "ab").explain(address, "a") is not None
        assert chains == []
    with tls_server(identity("a").private_pem, identity("a").certificate.pem) as address:
        chains.clear()
        assert credentials("b", "ab").explain(address, "a") is None
        assert len(chains) == 1


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_key_lies_in_a_file_only_as_long_as_it_is_read(monkeypatch, in_memory):
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create")
    with key_as_file(b"secret") as name:
        assert Path(name).read_bytes() == b"secret"
        assert in_memory or Path(name).stat().st_mode & 0o077 == 0
    with suppress(OSError):
        assert Path(name).read_bytes() != b"secret"


def test_a_connection_that_is_reset_was_refused_too(monkeypatch):
    def reset(self, count):
        raise ConnectionResetError

    monkeypatch.setattr(ssl.SSLSocket, "recv", reset)
    reason = explained(identity("a"))
    assert isinstance(reason, CertificateUnknown)
    assert "hangs up on the certificate of 'b'" in str(reason)


def test_signatures_in_records_hold_by_any_key_that_the_party_had():
    first, second = Identity.create("b"), Identity.create("b")
    listed = {"a": identity("a").certificate, "b": second.certificate}
    mine = Credentials(identity("a"), listed, {"b": (first.certificate,)})
    for signer in (first, second):
        mine.verify_kept("b", b"yes", signer.sign(b"yes"))
    with pytest.raises(CertificateMismatch):
        mine.verify_kept("b", b"yes", identity("a").sign(b"yes"))
    with pytest.raises(CertificateMismatch):
        mine.verify("b", b"yes", first.sign(b"yes"))
