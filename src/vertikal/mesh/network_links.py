"""Links of the network mesh: one bidirectional gRPC stream each, dialled or accepted.

A link carries packets and nothing else; it may break at any moment. TLS shows who is at the other
end, and the first message each way names the party and its process. If they do not fit, the link is
refused with an error that the dialling party raises as its own.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol

import msgspec

from vertikal import errors
from vertikal.errors import IdentityError, InputError, MeshError, VertikalError, WireError
from vertikal.mesh.packets.envelope import CHUNK, MAX_PACKET, Ready, whole
from vertikal.mesh.packets.security import NetworkSecurity
from vertikal.records import msgpack_reader

# What goes wrong with a handshake is an error here, not a line in somebody's terminal.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
# gRPC's fork handlers can abort a child before it becomes another program, where other threads are
# at work in its parent: a service lost Ray's first process that way. No child of a party goes on
# with gRPC, so none needs them.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# gRPC has no setting for the lowest version of TLS. These suites are those of TLS 1.2 and need an
# RSA key, which no party has, so that TLS 1.3, whose suites are fixed, is all that is left. gRPC
# reads them once, when it is loaded.
_SUITES = ("GRPC_SSL_CIPHER_SUITES", "ECDHE-RSA-AES256-GCM-SHA384")
TOO_LATE = "grpc" in sys.modules and os.environ.get(_SUITES[0]) != _SUITES[1]
"""True if gRPC was loaded before it could be told."""
os.environ[_SUITES[0]] = _SUITES[1]

try:
    import grpc
except ModuleNotFoundError as missing:
    raise InputError("the network mesh needs grpcio: pip install 'vertikal[node]'") from missing

SERVICE, METHOD = "vertikal.Mesh", "Link"
MAX_GREETING = 512
RETRY = (0.05, 2.0)
"""Seconds between attempts to dial: the first, and the longest."""
FLUSH = 1.0
"""Seconds that a link has at the end to deliver what lies ready."""
EXPLAIN_AFTER = 3
"""Failed attempts after which TLS itself is asked for the reason."""
STREAMS = 4
"""Streams that one party may have open at once. An old one may not have ended when its successor
comes; more would take the threads that other parties need."""
GREETING = 20.0
"""Seconds that the other end of a new stream has to say who it is."""
HANDSHAKE = 10.0
"""Seconds that a new connection has for its TLS handshake."""
CONNECTIONS = 512
"""Connections that are accepted at once, of whomever. Each takes a file number, of which a process
often has 1,024: a party that is left without one can write nothing to its store."""
PING = (15.0, 60.0)
"""Seconds of silence after which a connection is tried, and that the answer may take.

A connection that a router has forgotten ends without a word to anybody; it would stand for ever.
The answer waits behind what is under way, so a slow link needs the longer time; and a machine that
stood still for less than that has lost nothing.
"""

OPTIONS = [
    ("grpc.max_receive_message_length", MAX_PACKET),
    ("grpc.max_send_message_length", MAX_PACKET),
    # A chunk arrives in one piece, and not in sixty-four.
    ("grpc.http2.max_frame_size", 2 * CHUNK),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.so_reuseport", 0),
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_time_ms", int(1000 * PING[0])),
    ("grpc.keepalive_timeout_ms", int(1000 * PING[1])),
    # Without this one gRPC waits a minute for the answer, whatever the line before says.
    ("grpc.http2.ping_timeout_ms", int(1000 * PING[1])),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # Who listens must not take the other's pings for an attack.
    ("grpc.http2.min_ping_interval_without_data_ms", int(1000 * PING[0] / 3)),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.server_handshake_timeout_ms", int(1000 * HANDSHAKE)),
    ("grpc.max_allowed_incoming_connections", CONNECTIONS),
]


class Greeting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first message on a link, each way: which party, and which process of it."""

    name: str
    session: bytes


_read_greeting = msgpack_reader(Greeting)


def read_greeting(raw: bytes) -> Greeting:
    if len(raw) > MAX_GREETING:
        raise WireError(f"greeting of {len(raw)} bytes, at most {MAX_GREETING} are allowed")
    try:
        return _read_greeting(raw)
    except (msgspec.DecodeError, ValueError) as error:
        raise WireError(f"greeting: {error}") from None


def _first(messages: Iterator[bytes], give_up: Callable[[], object]) -> Greeting:
    """Read the greeting of a new stream, and give it up if none comes in time."""
    timer = threading.Timer(GREETING, give_up)
    timer.daemon = True
    timer.start()
    try:
        return read_greeting(next(messages))
    finally:
        timer.cancel()


class _Queues:
    """Queues of packets, one for each source; the sources take turns."""

    def __init__(self) -> None:
        self._packets: dict[str, deque[Ready]] = {}
        """By source; the source whose turn is next comes first."""

    def __bool__(self) -> bool:
        return bool(self._packets)

    def append(self, source: str, packet: Ready) -> None:
        self._packets.setdefault(source, deque()).append(packet)

    def pop(self) -> tuple[str, Ready]:
        source = next(iter(self._packets))
        mine = self._packets.pop(source)
        packet = mine.popleft()
        if mine:
            self._packets[source] = mine
        return source, packet


class Outbox:
    """Packets that wait to be written to one stream; urgent ones overtake chunks of data.

    Of a relay they come from several sources, which take turns and have their bytes counted apart:
    one that sends too much is slowed down, and holds up nobody else.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._urgent = _Queues()
        self._data = _Queues()
        self._bytes: dict[str, int] = {}
        self._closed = False

    def put(
        self, packet: Ready, *, urgent: bool, source: str = "", limit: int | None = None
    ) -> None:
        """Add a packet; with a ``limit``, wait while more bytes of its source lie here."""
        with self._changed:
            while limit is not None and self._bytes.get(source, 0) > limit and not self._closed:
                self._changed.wait(1.0)
            if self._closed:
                return
            (self._urgent if urgent else self._data).append(source, packet)
            self._bytes[source] = self._bytes.get(source, 0) + len(packet)
            self._changed.notify_all()

    def close(self) -> None:
        """Drop all packets; nothing comes out any more."""
        with self._changed:
            self._closed = True
            self._urgent, self._data = _Queues(), _Queues()
            self._changed.notify_all()

    def finish(self) -> None:
        """Take nothing more; the packets here still come out."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __iter__(self) -> Iterator[bytes]:
        while True:
            with self._changed:
                while not (self._urgent or self._data or self._closed):
                    self._changed.wait()
                if not (self._urgent or self._data):
                    return
                source, packet = (self._urgent or self._data).pop()
                self._bytes[source] -= len(packet)
                self._changed.notify_all()
            yield whole(packet)


class Link:
    """One live stream to one party."""

    def __init__(self, peer: str, dialled: bool) -> None:
        self.peer = peer
        self.dialled = dialled
        self.outbox = Outbox()
        self.end: Callable[[], object] = bool
        """Ends the stream."""

    def close(self) -> None:
        self.outbox.close()
        self.end()


class LinkedMesh(Protocol):
    """The mesh, as its links see it."""

    me: str
    parties: tuple[str, ...]
    greeting: Greeting

    def admit(self, name: str, session: bytes) -> None: ...
    def link_up(self, link: Link) -> None: ...
    def link_down(self, link: Link) -> None: ...
    def arrived(self, raw: bytes, link: Link) -> None: ...
    def blame(self, name: str, error: MeshError) -> None: ...
    def unreachable(self, name: str, reason: str) -> None: ...
    def restarted(self, name: str) -> MeshError: ...


def _show_defect() -> None:
    """Print the traceback of the error at hand, if there is still somewhere to write it."""
    with suppress(OSError, ValueError):
        traceback.print_exc()


def check_tls() -> None:
    """Refuse to go on where gRPC would also speak an older TLS than 1.3."""
    if TOO_LATE:
        raise InputError(
            "links need TLS 1.3, but gRPC was loaded before vertikal.mesh.network and accepts TLS "
            f"1.2 in this process; import that first, or set {'='.join(_SUITES)} in the environment"
        )


def _is_refused(address: str) -> bool:
    """Tell whether nobody listens at this address."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), RETRY[1]).close()
    except ConnectionRefusedError:
        return True
    except (OSError, ValueError):
        pass
    return False


class Listener:
    """The listening end, which accepts links."""

    def __init__(
        self, mesh: LinkedMesh, address: str, security: NetworkSecurity, *, plaintext: bool
    ) -> None:
        if not plaintext:
            check_tls()
        self._mesh = mesh
        self._security = security
        self._plaintext = plaintext
        # A stream occupies a thread; an old one may not have ended when its successor comes.
        self._pool = ThreadPoolExecutor(STREAMS * len(mesh.parties), f"{mesh.me} accepts")
        self._streams: dict[bytes, int] = {}
        """Streams by the certificate of who opened them."""
        self._lock = threading.Lock()
        self._changed: grpc.ServerCertificateConfiguration | None = None
        """Keys that TLS does not go by yet."""
        self._server = grpc.server(self._pool, options=OPTIONS)
        handler = grpc.stream_stream_rpc_method_handler(self._serve)
        generic = grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler})
        self._server.add_generic_rpc_handlers((generic,))
        try:
            if plaintext:
                self.port = self._server.add_insecure_port(address)
            else:
                credentials = grpc.dynamic_ssl_server_credentials(
                    self._configuration(), self._take_changed, require_client_authentication=True
                )
                self.port = self._server.add_secure_port(address, credentials)
        except RuntimeError:
            raise InputError(
                f"{mesh.me}: cannot listen at {address}: the port is taken (was this party "
                "started twice?) or the address is not this machine's"
            ) from None

    def _configuration(self) -> grpc.ServerCertificateConfiguration:
        """This party's certificate, and those that TLS accepts, as they are now."""
        security, mesh = self._security, self._mesh
        others = tuple(name for name in mesh.parties if name != mesh.me)
        return grpc.ssl_server_certificate_configuration(
            [(security.private_pem(), security.certificate_pem())], security.trusted_pem(others)
        )

    def trust(self, security: NetworkSecurity) -> None:
        """Go by other keys and parties from the next connection on; links that stand stay."""
        self._security = security
        with self._lock:
            self._changed = self._configuration()

    def _take_changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Answer TLS, which asks at every connection: the new keys once, then None, no change.

        An answer other than None makes gRPC replace what other connections are using at the same
        time, without a lock. Given with every connection, it crashed the process within hundreds.
        """
        with self._lock:
            changed, self._changed = self._changed, None
        return changed

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop(FLUSH).wait(2 * FLUSH)
        self._pool.shutdown(wait=False)

    def _serve(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        shown = b"" if self._plaintext else context.auth_context()["x509_pem_cert"][0]
        with self._lock:
            self._streams[shown] = self._streams.get(shown, 0) + 1
            many = self._streams[shown] > STREAMS and not self._plaintext
        try:
            if many:
                context.abort(
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    f"at most {STREAMS} streams of one party are served; end some",
                )
            yield from self._talk(shown, requests, context)
        finally:
            with self._lock:
                self._streams[shown] -= 1

    def _talk(
        self, shown: bytes, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        """Serve one stream to its end; ``shown`` is the certificate of who opened it."""
        try:
            greeting = _first(requests, context.cancel)
            if not self._plaintext:
                self._security.recognise(shown, greeting.name)
            self._mesh.admit(greeting.name, greeting.session)
        except IdentityError as error:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, f"{type(error).__name__}: {error}")
        except (VertikalError, StopIteration, grpc.RpcError) as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{type(error).__name__}: {error}")
        link = Link(greeting.name, False)
        link.end = context.cancel

        def read() -> None:
            try:
                for raw in requests:
                    self._mesh.arrived(raw, link)
            except (WireError, grpc.RpcError):
                # Nonsense ends the link of who sent it; the party goes on serving the others.
                pass
            finally:
                self._drop(link)

        yield msgspec.msgpack.encode(self._mesh.greeting)
        try:
            self._mesh.link_up(link)
            threading.Thread(
                target=read, name=f"{self._mesh.me} reads {link.peer}", daemon=True
            ).start()
        except Exception:
            # Nobody would read from it: the peer sees it end and dials again.
            self._drop(link)
            raise
        yield from link.outbox

    def _drop(self, link: Link) -> None:
        try:
            self._mesh.link_down(link)
        finally:
            link.close()


class Dialler:
    """Keeps a link to one listening party, dialling again whenever it breaks."""

    def __init__(
        self,
        mesh: LinkedMesh,
        peer: str,
        address: str,
        security: NetworkSecurity,
        *,
        plaintext: bool,
    ) -> None:
        if not plaintext:
            check_tls()
        self._mesh = mesh
        self._peer = peer
        self._address = address
        self._security = security
        self._plaintext = plaintext
        self._session = b""
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"{mesh.me} dials {peer}", daemon=True
        )

    def trust(self, security: NetworkSecurity) -> None:
        """Go by other keys from the next attempt on; a link that stands stays."""
        self._security = security

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Dial no more, and wait a little until what was sent is gone."""
        self._stopped.set()
        self._thread.join(FLUSH)

    def _run(self) -> None:
        pause, failures = RETRY[0], 0
        while not self._stopped.is_set():
            began = time.monotonic()
            refusal = self._attempt(failures + 1)
            if refusal is not None:
                try:
                    self._mesh.blame(self._peer, refusal)
                    return
                except Exception:
                    # Who cannot be told does not dial again either: this thread goes on.
                    _show_defect()
            if time.monotonic() - began > RETRY[1]:
                pause, failures = RETRY[0], 0
            failures += 1
            self._stopped.wait(pause)
            pause = min(RETRY[1], 2 * pause)

    def _attempt(self, number: int) -> MeshError | None:
        """Dial once; after some failures find out why. Return the error that ends this dialler."""
        try:
            with self._channel() as channel:
                refusal = self._talk(channel)
            if refusal is None and not (number % EXPLAIN_AFTER or self._session or self._plaintext):
                reason = self._security.explain(self._address, self._peer)
                if isinstance(reason, MeshError):
                    refusal = type(reason)(f"{self._mesh.me}: {reason}")
                elif _is_refused(self._address):
                    self._mesh.unreachable(
                        self._peer, f"connection refused at {self._address}, trying again"
                    )
            return refusal
        except Exception as error:
            # A defect in what a packet led to ends its link, never the dialling.
            _show_defect()
            return MeshError(
                f"{self._mesh.me}: the link to {self._peer} failed here: "
                f"{type(error).__name__}: {error}"
            )

    def _channel(self) -> grpc.Channel:
        if self._plaintext:
            return grpc.insecure_channel(self._address, OPTIONS)
        credentials = grpc.ssl_channel_credentials(
            self._security.trusted_pem((self._peer,)),
            self._security.private_pem(),
            self._security.certificate_pem(),
        )
        name = ("grpc.ssl_target_name_override", self._security.server_name(self._peer))
        return grpc.secure_channel(self._address, credentials, [*OPTIONS, name])

    def _talk(self, channel: grpc.Channel) -> MeshError | None:
        """Serve one stream to its end. Return the error if there must not be another stream."""
        call: Callable[[Iterator[bytes]], grpc.Call] = channel.stream_stream(f"/{SERVICE}/{METHOD}")
        link = Link(self._peer, True)
        link.outbox.put(msgspec.msgpack.encode(self._mesh.greeting), urgent=True)
        stream = call(iter(link.outbox))
        link.end = stream.cancel
        try:
            greeting = _first(stream, stream.cancel)
            if greeting.name != self._peer:
                raise WireError(f"greeting by {greeting.name}")
            if self._session not in (b"", greeting.session):
                return self._mesh.restarted(self._peer)
            self._session = greeting.session
            self._mesh.link_up(link)
            for raw in stream:
                self._mesh.arrived(raw, link)
        except WireError as error:
            return WireError(f"{self._mesh.me}: {self._peer} sent {error}")
        except grpc.RpcError as error:
            return self._refusal(error)
        finally:
            try:
                self._mesh.link_down(link)
            finally:
                link.close()
        return None

    def _refusal(self, error: grpc.RpcError) -> MeshError | None:
        """Repeat the listening party's words, where it refused; None for what may pass."""
        code, details = error.code(), str(error.details())
        if code not in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.INVALID_ARGUMENT):
            return None
        name, _, reason = details.partition(": ")
        kind = getattr(errors, name, MeshError)
        if not (isinstance(kind, type) and issubclass(kind, MeshError)):
            kind = MeshError
        return kind(f"{self._mesh.me}: {self._peer} refused this party: {reason}")
