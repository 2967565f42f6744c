"""Links from a worker of one party to a worker of another: frames over TLS, one connection a pair.

A mesh joins the processes of parties; these links join processes that a party computes with, so
that what one worker has need not pass through the party's own process and its one port. Who may
dial whom is told over the mesh (`party.direct_links`), which vouches for the certificates too.

A link sends frames in one direction, from the worker that dialled. Its receiver reads when it is
asked for a frame, no sooner: a sender that is ahead waits. Frames that are read before they are
asked for are kept. A link that breaks is not mended: both ends are told (`LinkLost`), and the
parties begin again with new links.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vertikal.errors import DeadlineExceeded, IdentityError, LinkLost, WireError
from vertikal.mesh import wire

HANDSHAKE = 10.0
"""Seconds for a connection to be made and both sides to show who they are."""

MISSING = 20.0
"""Seconds after which a link that nobody has dialled counts as lost."""

UNASKED = 256 << 20
"""Bytes of frames that a link may bring before they are asked for."""

KEEPALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""Options by which a machine that vanished without a word is noticed in some 20 seconds."""


class LinkSecurity(Protocol):
    """Certificates of both ends; `secure.keys.link_identity` implements it."""

    @property
    def me(self) -> str: ...

    def listening(self) -> ssl.SSLContext: ...

    def dialling(self, peer: str) -> ssl.SSLContext: ...

    def server_name(self, peer: str) -> str: ...

    def owner(self, certificate: bytes) -> str:
        """Return the party of a certificate (DER) that TLS has accepted."""


@dataclass
class _Link:
    """One connection, and the frames that were read too early."""

    connection: ssl.SSLSocket
    peer: str
    title: str  # of the worker at the other end
    early: dict[str, wire.Frame] = field(default_factory=dict)

    def send(self, frame: wire.Frame) -> None:
        for part in frame.buffers():
            self.connection.sendall(part)

    def read(self, seconds: float) -> wire.Frame:
        """Read a frame that comes whole within so many seconds."""
        end = time.monotonic() + seconds

        def exactly(size: int) -> bytes:
            room = bytearray(size)
            view, got = memoryview(room), 0
            while got < size:
                self.connection.settimeout(max(end - time.monotonic(), 0.001))
                count = self.connection.recv_into(view[got:])
                if not count:
                    raise ConnectionResetError("it was closed at the other end")
                got += count
            return room  # type: ignore[return-value]

        return wire.read(exactly)

    def end(self) -> None:
        """Break the connection; whoever reads from it in another thread stops."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()


class WorkerLinks:
    """All links of one worker, number ``worker`` from 0 on, of one party, in one pass."""

    def __init__(self, security: LinkSecurity, worker: int, deadline: float) -> None:
        self.me, self.worker = security.me, worker
        self.security, self._deadline = security, deadline
        self._links: dict[tuple[str, int], _Link | None] = {}  # None: it was there, and broke
        self._changed = threading.Condition()
        self._listener: socket.socket | None = None
        self.address = ""
        """Address at which this worker listens, if it does."""

    def listen(self, port: int = 0, host: str | None = None) -> None:
        """Let workers of the trusted parties dial this one, at a port of its own if that is 0."""
        host = host or own_host()
        # Bound to the one address that is told to others.
        self._listener = socket.create_server((host, port))
        self.address = f"{host}:{self._listener.getsockname()[1]}"
        context = self.security.listening()
        arguments = (self._listener, context)
        threading.Thread(target=self._accept, args=arguments, daemon=True).start()

    def _accept(self, listener: socket.socket, context: ssl.SSLContext) -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._welcome, args=(plain, context), daemon=True).start()

    def _welcome(self, plain: socket.socket, context: ssl.SSLContext) -> None:
        """Take a link if TLS accepts who dials; a connection that is refused is closed."""
        try:
            plain.settimeout(HANDSHAKE)
            connection = context.wrap_socket(plain, server_side=True)
        except OSError:
            plain.close()
            return
        link = _Link(connection, "", "")
        try:
            link.peer = peer = self.security.owner(connection.getpeercert(binary_form=True) or b"")
            frame = link.read(HANDSHAKE)
            hello: Any = frame.payload()
            number = hello["worker"]
            if (frame.header.sender, frame.header.receiver) != (peer, self.me) or (
                type(number) is not int or hello["to"] != self.worker
            ):
                raise IdentityError("it is meant for another worker")
            link.title = f"worker {number + 1} of {peer}"
            link.send(wire.frame(self.me, peer, "welcome", {}))
        except (OSError, WireError, IdentityError, KeyError, TypeError):
            link.end()
            return
        _watch(connection)
        with self._changed:
            before = self._links.get((peer, number))
            self._links[peer, number] = link
            self._changed.notify_all()
        if before is not None:
            before.end()

    def dial(self, peer: str, worker: int, address: str) -> None:
        """Make the link to a worker of another party; raise LinkLost if it cannot be reached."""
        title = f"worker {worker + 1} of {peer} at {address}"
        host, _, port = address.rpartition(":")
        began = time.monotonic()
        with ExitStack() as failing:
            try:
                plain = socket.create_connection((host, int(port)), HANDSHAKE)
                failing.callback(plain.close)
                connection = self.security.dialling(peer).wrap_socket(
                    plain, server_hostname=self.security.server_name(peer)
                )
                failing.callback(connection.close)
                link = _Link(connection, peer, title)
                hello = {"worker": self.worker, "to": worker}
                link.send(wire.frame(self.me, peer, "hello", hello))
                # TLS does not say that the other side has refused this one's certificate.
                link.read(HANDSHAKE)
            except (OSError, ValueError, WireError) as error:
                raise LinkLost(
                    f"{self._title()} cannot reach {title}, after "
                    f"{time.monotonic() - began:.1f} s: {error}"
                ) from None
            failing.pop_all()
        _watch(connection)
        self._links[peer, worker] = link

    def send(self, peer: str, worker: int, tag: str, values: npt.NDArray[Any]) -> None:
        """Send an array to a worker that was dialled; raise LinkLost if it cannot get there."""
        began = time.monotonic()
        link = self._links.get((peer, worker))
        if link is None:
            raise LinkLost(f"{self._title()} has no link to worker {worker + 1} of {peer} any more")
        try:
            link.connection.settimeout(self._deadline)
            link.send(wire.frame(self.me, peer, tag, values))
        except OSError as error:
            self._drop(peer, worker, link)
            waited = f"after {time.monotonic() - began:.1f} s"
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded(
                    f"{self._title()}: {link.title} takes nothing of {tag!r}, {waited}"
                ) from None
            raise LinkLost(
                f"{self._title()}: the link to {link.title} broke under {tag!r}, {waited}: {error}"
            ) from None

    def receive(
        self, peer: str, worker: int, tag: str, dtype: npt.DTypeLike, shape: tuple[int, ...]
    ) -> npt.NDArray[Any]:
        """Receive the array that a worker of ``peer`` sends under ``tag``.

        Raises LinkLost if its link breaks before, DeadlineExceeded if it says nothing.
        """
        began = time.monotonic()
        name = f"worker {worker + 1} of {peer}"
        with self._changed:
            self._changed.wait_for(
                lambda: (peer, worker) in self._links, min(MISSING, self._deadline)
            )
            link = self._links.get((peer, worker))
        if link is None:
            raise LinkLost(
                f"{self._title()} has no link from {name}, after {time.monotonic() - began:.1f} s"
            )
        try:
            while tag not in link.early:
                self._keep(link, link.read(self._deadline - (time.monotonic() - began)))
        except (OSError, WireError) as error:
            self._drop(peer, worker, link)
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded(
                    f"{self._title()}: nothing from {name} for {tag!r} within {self._deadline:g} s"
                ) from None
            raise LinkLost(
                f"{self._title()}: the link of {name} broke before {tag!r} had come, after "
                f"{time.monotonic() - began:.1f} s: {error}"
            ) from None
        found = np.asarray(link.early.pop(tag).payload())
        if (found.dtype, found.shape) != (dtype, shape):
            raise WireError(
                f"{self._title()}: {name} sent {found.dtype} {found.shape} under {tag!r}, "
                f"expected {dtype} {shape}"
            )
        return found

    def _keep(self, link: _Link, frame: wire.Frame) -> None:
        head = frame.header
        ends = (head.sender, head.receiver)
        if head.kind != "array" or ends != (link.peer, self.me) or head.tag in link.early:
            raise WireError(f"{link.title} sent {head.tag!r}, which nobody waits for")
        link.early[head.tag] = frame
        if sum(one.size for one in link.early.values()) > UNASKED + frame.size:
            raise WireError(f"{link.title} sends what nobody asks for")

    def _drop(self, peer: str, worker: int, link: _Link) -> None:
        link.end()
        with self._changed:
            if self._links.get((peer, worker)) is link:
                self._links[peer, worker] = None

    def close(self) -> None:
        """End the links, and let nobody dial any more."""
        if self._listener is not None:
            # Closed alone, it would still wait for the next one to dial.
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        with self._changed:
            links, self._links = self._links, {}
        for link in links.values():
            if link is not None:
                link.end()

    def _title(self) -> str:
        return f"worker {self.worker + 1} of {self.me}"


def own_host() -> str:
    """Return the address of this machine towards others, loopback if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: the system only says from which address it would be.
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _watch(connection: ssl.SSLSocket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
