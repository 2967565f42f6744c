"""The port of a listening party: which TLS it speaks, and how many connections it keeps."""

from __future__ import annotations

import os
import resource
import select
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager

import pytest

from tests.conformance.networks import credentials, identity
from tests.mesh.test_network_links import LinkedMesh
from tests.waiting import until
from vertikal.errors import InputError
from vertikal.mesh import network_links
from vertikal.mesh.network_links import CONNECTIONS, HANDSHAKE, Dialler, Listener

SECONDS = 20.0
SUITES = "GRPC_SSL_CIPHER_SUITES", "ECDHE-RSA-AES256-GCM-SHA384"


@pytest.fixture
def port():
    """The port on which party a listens."""
    listener = Listener(LinkedMesh("a"), "127.0.0.1:0", credentials("a", "ab"), plaintext=False)
    listener.start()
    yield listener.port
    listener.stop()


@pytest.fixture
def files(tmp_path):
    """Key and certificate of party b."""
    found = tmp_path / "b.key", tmp_path / "b.crt"
    identity("b").save(*found)
    return found


def shown(port, files, version):
    """The first byte that the listening party sends a member over this version of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = version
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(files[1], files[0])
    with (
        socket.create_connection(("127.0.0.1", port), SECONDS) as plain,
        context.wrap_socket(plain) as connection,
    ):
        connection.settimeout(SECONDS)
        return connection.recv(1)


def test_a_listening_party_refuses_tls_1_2_also_of_a_member(port, files):
    assert shown(port, files, ssl.TLSVersion.TLSv1_3) != b""
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        shown(port, files, ssl.TLSVersion.TLSv1_2)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_dialling_party_refuses_tls_1_2(version, files):
    """A peer that shows the listed certificate is refused for its older version alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(files[1], files[0])
    server = socket.create_server(("127.0.0.1", 0))
    spoken = threading.Event()
    tried = threading.Semaphore(0)

    def serve():
        while True:
            try:
                plain, _ = server.accept()
                with plain, context.wrap_socket(plain, server_side=True) as connection:
                    connection.settimeout(SECONDS)
                    if connection.recv(1):
                        spoken.set()
            except ssl.SSLError:
                pass
            except OSError:
                return
            finally:
                tried.release()

    threading.Thread(target=serve, daemon=True).start()
    address = f"127.0.0.1:{server.getsockname()[1]}"
    dialler = Dialler(LinkedMesh("a"), "b", address, credentials("a", "ab"), plaintext=False)
    dialler.start()
    try:
        assert tried.acquire(timeout=SECONDS)
        assert spoken.wait(0.0) is (version is ssl.TLSVersion.TLSv1_3)
    finally:
        dialler.stop()
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.fixture
def many_files():
    """Room for both ends of more connections than a party accepts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * CONNECTIONS
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"at most {hard} open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def hung_up(connections):
    """Those that the other end has closed."""
    poll = select.poll()
    for one in connections:
        poll.register(one, select.POLLIN)
    return {number for number, _ in poll.poll(0)}


@contextmanager
def listening(monkeypatch, handshake):
    """Give the port of a party that lets a handshake take so many seconds."""
    options = dict(network_links.OPTIONS)
    assert options["grpc.server_handshake_timeout_ms"] == 1000 * HANDSHAKE
    options["grpc.server_handshake_timeout_ms"] = int(1000 * handshake)
    monkeypatch.setattr(network_links, "OPTIONS", list(options.items()))
    listener = Listener(LinkedMesh("a"), "127.0.0.1:0", credentials("a", "ab"), plaintext=False)
    listener.start()
    try:
        yield listener.port
    finally:
        listener.stop()


@contextmanager
def idle(port, count):
    """So many connections on which nothing is said."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS))
            for _ in range(count)
        ]


def test_connections_of_strangers_are_bounded(monkeypatch, many_files):
    beyond = 60
    with (
        listening(monkeypatch, 600.0) as port,
        idle(port, CONNECTIONS + beyond) as connections,
    ):
        until(lambda: len(hung_up(connections)) >= beyond, "those beyond the bound are closed")
        assert len(hung_up(connections)) == beyond


def test_a_connection_without_a_handshake_ends(monkeypatch, files):
    with listening(monkeypatch, 0.5) as port, idle(port, 5) as connections:
        until(lambda: len(hung_up(connections)) == 5, "all are closed")
        assert shown(port, files, ssl.TLSVersion.TLSv1_3) != b""


@pytest.mark.parametrize(("environment", "refused"), [({}, True), ({SUITES[0]: SUITES[1]}, False)])
def test_a_process_that_has_loaded_grpc_before_is_refused(environment, refused):
    """There gRPC would speak TLS 1.2 too, unless the environment said better."""
    script = "import grpc; from vertikal.mesh.network_links import check_tls; check_tls()"
    inherited = {name: text for name, text in os.environ.items() if name != SUITES[0]}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ("gRPC was loaded before vertikal.mesh.network" in done.stderr) is refused
    assert (done.returncode == 0) is not refused


def test_a_process_in_which_grpc_came_first_has_no_links(monkeypatch):
    network_links.check_tls()
    monkeypatch.setattr(network_links, "TOO_LATE", True)
    with pytest.raises(InputError, match=r"links need TLS 1\.3, but gRPC was loaded before"):
        network_links.check_tls()
