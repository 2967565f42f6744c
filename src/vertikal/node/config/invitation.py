"""Forming a federation with one-time codes: one party invites by name, the others join.

    invite: waits on one port, one code per invited party; a code holds the address, the fingerprint
            of the inviting party's key and a secret that is good once
    join:   dials, checks the fingerprint, shows by the secret that it was invited, hands over its
            entry, and waits for the federation file of all

A code travels by another channel than the network (read aloud, a letter). Whoever has it can join
in the invited party's place, so it is good for one entry and some minutes.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import os
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from vertikal.errors import (
    CertificateMismatch,
    DeadlineExceeded,
    IdentityError,
    InputError,
    SecrecyError,
    VertikalError,
)
from vertikal.files import move_over
from vertikal.mesh.addresses import check_address
from vertikal.node.config.federation_file import (
    FederationFile,
    Member,
    check_party_name,
    parse_members,
    render,
)
from vertikal.node.printable import printable
from vertikal.records import from_json, from_msgpack
from vertikal.secure.keys.identity import Certificate, Identity

_PREFIX = "vk1."
_LINE = 1 << 20
_ENTRY = 1 << 16
"""Bytes of what a joining party sends."""
_PAUSE = 0.2
"""Seconds to wait after a connection that could not be accepted."""
_AGAIN = 1.0
"""Seconds between two attempts to reach the inviting party."""
_STEP = 20.0
"""Seconds that the other side has for one message."""
MOST_STRANGERS = 64
"""Connections that may be open before they have shown a code; then the oldest is closed.

Junk must not end an invitation: a code's secret has 128 bits, which nobody guesses.
"""


class InvitationCode(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """The code that an invited party gets: whom to dial, whose key to expect, and a secret."""

    address: str
    fingerprint: str
    name: str
    secret: bytes

    def text(self) -> str:
        raw = msgspec.msgpack.encode(self)
        return _PREFIX + base64.urlsafe_b64encode(raw).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> InvitationCode:
        try:
            body = text.strip().removeprefix(_PREFIX)
            raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
            code = from_msgpack(raw, cls)
        except (ValueError, msgspec.DecodeError):
            raise InputError("the code is not one that `vertikal invite` printed") from None
        # Another party chose the name and the address: the name leads to a file, both are printed.
        check_party_name(code.name, "the name in the code")
        check_address(code.address, plaintext=False)
        return code


class Invitation:
    """The inviting party's side: a port that stays open until all have joined or time is up."""

    def __init__(
        self,
        entry: Member,
        names: tuple[str, ...],
        address: str,
        context: ssl.SSLContext,
    ) -> None:
        for name in names:
            check_party_name(name)
        if entry.listens is None:
            raise InputError(
                f"entry of {entry.name}: it must have 'listens', the address of its service, since "
                f"the others dial it; `vertikal keygen {entry.name} --listens HOST:PORT` makes such"
            )
        self._entries: dict[str, Member] = {}
        self._mine = entry
        self._names = names
        self._context = context
        self._secrets = {name: secrets.token_bytes(16) for name in names}
        self._strangers: dict[ssl.SSLSocket, None] = {}
        """Connections that have not shown a code, the oldest first."""
        self._waiting: set[str] = set()
        """Parties that have joined and not been answered."""
        self._changed = threading.Condition()
        host, _, port = address.rpartition(":")
        self._socket = socket.create_server((host.strip("[]"), int(port)))
        at = f"{host}:{self._socket.getsockname()[1]}"
        self.codes = {
            name: InvitationCode(at, entry.fingerprint, name, secret).text()
            for name, secret in self._secrets.items()
        }

    def wait(self, seconds: float, joined: Callable[[str], None]) -> str:
        """Wait until all have joined; returns the federation file."""
        until = time.monotonic() + seconds
        with self._socket:
            while len(self._entries) < len(self._names):
                self._socket.settimeout(max(0.01, min(0.5, until - time.monotonic())))
                if time.monotonic() > until:
                    missing = [name for name in self._names if name not in self._entries]
                    raise DeadlineExceeded(
                        f"nobody joined as {', '.join(missing)} within {seconds:g} s; invite again"
                    )
                self._accept(until, joined)
        with self._changed:
            for stranger in self._strangers:
                _hang_up(stranger)
            # Those who joined get the file before this returns.
            self._changed.wait_for(lambda: not self._waiting, _STEP)
        return self.federation()

    def _accept(self, until: float, joined: Callable[[str], None]) -> None:
        """Serve the next connection, if one comes; close the oldest stranger if there are many."""
        try:
            plain, _ = self._socket.accept()
        except TimeoutError:
            return
        except OSError:
            if self._socket.fileno() < 0:
                raise
            # Too many open files, most likely: go on once some are closed.
            time.sleep(_PAUSE)
            return
        plain.settimeout(_STEP)
        connection = self._context.wrap_socket(
            plain, server_side=True, do_handshake_on_connect=False
        )
        with self._changed:
            self._strangers[connection] = None
            if len(self._strangers) > MOST_STRANGERS:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                _hang_up(oldest)
        threading.Thread(target=self._serve, args=(connection, until, joined), daemon=True).start()

    def close(self) -> None:
        """Stop listening; `wait` does so by itself."""
        self._socket.close()

    def federation(self) -> str:
        """Write the federation file of all that have joined."""
        return render(self._mine, *(self._entries[name] for name in self._names))

    def _serve(
        self, connection: ssl.SSLSocket, until: float, joined: Callable[[str], None]
    ) -> None:
        """Take the entry of one that joins, and answer with the file once all have joined."""
        name = ""
        try:
            with connection:
                connection.do_handshake()
                try:
                    name = self.admit(_receive(connection, _ENTRY))
                except VertikalError as error:
                    # A used code, or an entry that does not fit: who sent it hears why.
                    _send(connection, {"refused": str(error)})
                    return
                with self._changed:
                    self._waiting.add(name)
                    self._strangers.pop(connection, None)
                joined(name)
                with self._changed:
                    while len(self._entries) < len(self._names) and time.monotonic() < until:
                        self._changed.wait(0.5)
                    if len(self._entries) < len(self._names):
                        return
                text = self.federation()
                proof = proof_of(self._secrets[name], "federation", text)
                _send(connection, {"federation": text, "proof": proof})
        except (OSError, ValueError):
            # Somebody without a code, or one who hung up. The invitation goes on.
            pass
        finally:
            with self._changed:
                self._waiting.discard(name)
                self._strangers.pop(connection, None)
                self._changed.notify_all()

    def admit(self, message: Any) -> str:
        """Check that this is the entry of an invited party and keep it; its secret is used up."""
        name, entry = str(message.get("name")), str(message.get("entry"))
        with self._changed:
            secret = self._secrets.get(name)
            proof = proof_of(secret or bytes(16), "join", name, entry)
            good = hmac.compare_digest(proof.encode(), str(message.get("proof")).encode())
            if secret is None or not good or name in self._entries:
                raise IdentityError("the code is not valid, or was used before")
            member = parse_entry(entry, name)
            # When all have joined nobody could put it right.
            for other in (self._mine, *self._entries.values()):
                if member.listens is not None and member.listens == other.listens:
                    raise InputError(
                        f"{name} cannot listen at {member.listens}, where {other.name} does"
                    )
            self._entries[name] = member
            self._changed.notify_all()
        return name


def join(
    code: InvitationCode, entry: str, seconds: float, say: Callable[[str], None] = lambda text: None
) -> str:
    """Join as the invited party; returns the federation file. ``say`` is told who invites."""
    # The code names the file of the entry, so nothing but an entry of that name may be sent.
    entry = render(parse_entry(entry, code.name))
    host, _, port = code.address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    # The certificate is compared with the fingerprint in the code below, before anything is sent.
    context.verify_mode = ssl.CERT_NONE
    plain = _dial(code.address, (host.strip("[]"), int(port)), seconds, say)
    try:
        with plain, context.wrap_socket(plain) as connection:
            raw = connection.getpeercert(binary_form=True) or b""
            shown = Certificate.parse(ssl.DER_cert_to_PEM_cert(raw).encode())
            if not hmac.compare_digest(shown.fingerprint, code.fingerprint):
                raise CertificateMismatch(
                    f"{code.address} has the key {shown.fingerprint}, the code is of "
                    f"{code.fingerprint}; somebody else answers there"
                )
            check_party_name(shown.name, "name of the inviting party")
            say(f"{code.name} joins {shown.name} at {code.address}")
            proof = proof_of(code.secret, "join", code.name, entry)
            _send(connection, {"name": code.name, "entry": entry, "proof": proof})
            connection.settimeout(seconds)
            answer = _receive(connection)
    except (OSError, ValueError) as error:
        raise DeadlineExceeded(
            f"{code.address} gave no answer ({error}): the code is used up or too old, or not all "
            "have joined in time; ask for a new one"
        ) from None
    if "refused" in answer:
        raise InputError(f"{shown.name} refused: {printable(str(answer['refused']))[:300]}")
    text = str(answer.get("federation"))
    proof = proof_of(code.secret, "federation", text)
    if not hmac.compare_digest(proof.encode(), str(answer.get("proof")).encode()):
        raise SecrecyError("the federation file does not come from the party that wrote the code")
    return render(*check_federation(text).members)


def _dial(
    shown: str, address: tuple[str, int], seconds: float, say: Callable[[str], None]
) -> socket.socket:
    """Connect; as long as nobody listens there, say so once and try again, for so many seconds."""
    until = time.monotonic() + seconds
    said = ""
    while True:
        try:
            return socket.create_connection(address, min(_STEP, max(0.1, until - time.monotonic())))
        except ConnectionRefusedError:
            why = "connection refused"
        except socket.gaierror:
            why = "no such host"
        except OSError as error:
            why = error.strerror or "no answer"
        if time.monotonic() + _AGAIN > until:
            raise DeadlineExceeded(
                f"{why} at {shown} for {seconds:g} s: is `vertikal invite` running there, and is "
                "the address right? The code is not used up"
            )
        if why != said:
            say(f"{why} at {shown}, trying again")
            said = why
        time.sleep(_AGAIN)


def parse_entry(text: str, name: str) -> Member:
    """Read the one entry in this text; refuse any but that of ``name`` with its own certificate."""
    members = parse_members(text)
    if len(members) != 1:
        raise InputError.of(f"entry of {name}", "one [[party]]", f"{len(members)} of them")
    (member,) = members
    if member.name != name:
        raise CertificateMismatch(f"the entry of {member.name!r} under the name {name!r}")
    certificate = Certificate.parse(member.certificate.strip().encode())
    if (certificate.name, certificate.fingerprint) != (name, member.fingerprint):
        raise CertificateMismatch(f"the entry of {name!r} has another's certificate")
    for address in (member.listens, member.bind):
        if address is not None:
            check_address(address, plaintext=False)
    return member


def check_federation(text: str) -> FederationFile:
    """Read a federation file from text; its names, keys and addresses must fit together."""
    return FederationFile.of(parse_members(text))


def check_place(path: Path) -> None:
    """Refuse a place to which no federation file can be written."""
    if path.exists():
        raise InputError(f"{path.name} is there already; move it away if there is to be a new one")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(f"{path.name} cannot be written: no folder that can be written to")


def check_own_key(entry: Member, key: Path, certificate: Path, passphrase: bytes | None) -> None:
    """Refuse an entry that is not of this key, or whose certificate is not good now."""
    own = Identity.load(key, certificate, passphrase)
    if own.certificate.fingerprint != entry.fingerprint:
        raise CertificateMismatch(
            f"the entry of {entry.name!r} has another key than {key.name!r}; `vertikal keygen "
            f"{entry.name} --force` makes both anew"
        )
    own.certificate.check_time()


def write_federation(path: Path, text: str) -> None:
    """Write the federation file; refuse to replace another one."""
    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise InputError(
            f"{path.name} is there already and differs; move it away if the new one is right"
        )
    move_over(path, text.encode(), mode=0o666)


def server_context(key: Path, certificate: Path, passphrase: bytes | None) -> ssl.SSLContext:
    """Make a TLS context that shows this party's certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(certificate, key, passphrase or b"")
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"key {key.name!r} and its certificate cannot be used: {error}") from None
    return context


def proof_of(secret: bytes, *texts: str) -> str:
    """Prove knowledge of the secret, bound to these texts."""
    joined = b"".join(len(text.encode()).to_bytes(8, "big") + text.encode() for text in texts)
    return hmac.new(secret, joined, "sha256").hexdigest()


def _send(connection: ssl.SSLSocket, message: dict[str, Any]) -> None:
    connection.sendall(msgspec.json.encode(message) + b"\n")


def _hang_up(connection: ssl.SSLSocket) -> None:
    """End a connection under the thread that waits for it, which then closes it."""
    with contextlib.suppress(OSError):
        # Below TLS, whose state belongs to that thread.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _receive(connection: ssl.SSLSocket, most: int = _LINE) -> dict[str, Any]:
    received = bytearray()
    while not received.endswith(b"\n"):
        piece = connection.recv(1 << 14)
        if not piece or len(received) > most:
            raise ConnectionResetError("the other side hung up")
        received += piece
    try:
        return from_json(bytes(received), dict[str, Any])
    except msgspec.DecodeError as error:
        raise ConnectionResetError(f"not a message: {error}") from None
