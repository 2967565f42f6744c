"""Throughput of the network mesh against a bare gRPC stream of the same chunks, both over TLS.

    python -m benchmarks.peers.network_throughput

Sender and receiver are two processes on loopback. The ways take turns, so that a busy machine slows
all; the figure that counts is the median of their ratios. The bare stream has the same options of
gRPC, sends ready-made chunks and throws them away at the other end; the mesh cuts, numbers, keeps,
checks and assembles them. The target is held against messages of 4 MiB, the blocks in which FDSKL
sends phases; one large message also costs its receiver the zeroing of that much fresh memory.
"""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from vertikal.mesh.network import NetworkMesh
from vertikal.mesh.network_links import OPTIONS

# isort: split
# After these, which tell gRPC to speak TLS 1.3 only.
import grpc
import numpy as np

from benchmarks.harness import Benchmark, alternating, arguments, median
from vertikal.mesh.packets.envelope import CHUNK
from vertikal.secure.keys.credentials import Credentials
from vertikal.secure.keys.identity import Identity

NAMES = ("receiver", "sender", "third")
BARE = "bare gRPC stream"


def main() -> None:
    options = arguments(__doc__ or "", megabytes=128, message=4, repeats=15)
    bench = Benchmark("network_throughput", vars(options) | {"out": "", "chunk": CHUNK})
    identities = {name: Identity.create(name) for name in NAMES}
    blocks = f"network mesh, messages of {options.message} MiB"
    single = f"network mesh, one message of {options.megabytes} MiB"
    ways: dict[str, Bare | Meshed] = {
        BARE: Bare(identities),
        blocks: Meshed(identities, options.message),
        single: Meshed(identities, options.megabytes),
        "network mesh, relayed": Meshed(identities, options.message, receiver="third"),
    }
    runs = {name: lambda way=way: way.move(options.megabytes) for name, way in ways.items()}
    try:
        for run in (*runs.values(), *runs.values()):
            run()
        times = alternating(runs, options.repeats)
    finally:
        for way in ways.values():
            way.close()
    ratios = {}
    for name, values in times.items():
        bench.figure(f"{name}, MiB/s", options.megabytes / median(values))
        pairs = zip(times[BARE], values, strict=True)
        ratios[name] = median([bare / mesh for bare, mesh in pairs])
    bench.target(f"{blocks} / bare", ratios.pop(blocks), 0.8, at_most=False)
    del ratios[BARE]
    for name, ratio in ratios.items():
        bench.figure(f"{name} / bare", ratio)
    bench.write(options.out)


class _Child:
    """A process that sends when it is told how much."""

    def __init__(self, work: Any, *details: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=work, args=(there, *details), daemon=True)
        self._process.start()

    def tell(self, what: Any) -> None:
        self._pipe.send(what)

    def close(self) -> None:
        self._process.terminate()
        self._process.join()


class Bare:
    """One stream of chunks to a handler that counts them."""

    def __init__(self, identities: dict[str, Identity]) -> None:
        mine, other = (identities[name].certificate.pem for name in NAMES[:2])
        self._server = grpc.server(ThreadPoolExecutor(2), options=OPTIONS)
        handler = grpc.stream_unary_rpc_method_handler(self._count)
        generic = grpc.method_handlers_generic_handler("bench", {"Go": handler})
        self._server.add_generic_rpc_handlers((generic,))
        credentials = grpc.ssl_server_credentials(
            [(identities["receiver"].private_pem, mine)], other, require_client_auth=True
        )
        port = self._server.add_secure_port("127.0.0.1:0", credentials)
        self._server.start()
        context = multiprocessing.get_context("spawn")
        self._done, there = context.Pipe()
        keys = (mine, identities["sender"].private_pem, other)
        name = Credentials(
            identities["receiver"], {n: i.certificate for n, i in identities.items()}
        ).server_name("receiver")
        self._child = _Child(_send_bare, port, keys, name)
        self._got = there

    def _count(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        total = sum(len(chunk) for chunk in requests)
        self._got.send(total)
        return b""

    def move(self, megabytes: int) -> None:
        self._child.tell(megabytes)
        assert self._done.recv() == megabytes << 20

    def close(self) -> None:
        self._child.close()
        self._server.stop(0)


def _send_bare(pipe: Connection, port: int, keys: tuple[bytes, ...], name: str) -> None:
    channel = grpc.secure_channel(
        f"127.0.0.1:{port}",
        grpc.ssl_channel_credentials(*keys),
        [*OPTIONS, ("grpc.ssl_target_name_override", name)],
    )
    call = channel.stream_unary("/bench/Go")
    ready: list[bytes] = []
    while True:
        count = (pipe.recv() << 20) // CHUNK
        if len(ready) != count:
            ready = [bytes([i % 256]) * CHUNK for i in range(count)]
        call(iter(ready))


class Meshed:
    """One array from a mesh in another process to a mesh in this one."""

    def __init__(
        self, identities: dict[str, Identity], message: int = 4, receiver: str = "receiver"
    ) -> None:
        self._message = message
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        addresses = {name: address if name == "receiver" else None for name in NAMES}
        listed = {name: one.certificate.pem for name, one in identities.items()}
        raw = {name: (one.private_pem, one.certificate.pem) for name, one in identities.items()}
        self._meshes = {name: _mesh(name, addresses, raw, listed) for name in ("receiver", "third")}
        self._receiver = receiver
        self._child = _Child(_send_meshed, addresses, raw, listed, receiver)

    def move(self, megabytes: int) -> None:
        self._child.tell((megabytes, self._message))
        came = 0
        while came < megabytes << 20:
            payload = self._meshes[self._receiver].recv("sender", "x")
            assert isinstance(payload, np.ndarray)
            came += payload.nbytes

    def close(self) -> None:
        self._child.close()
        for mesh in self._meshes.values():
            mesh.stop(0.0)


def _mesh(name: str, addresses: Any, raw: Any, listed: Any) -> NetworkMesh:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from vertikal.secure.keys.identity import Certificate

    with TemporaryDirectory() as folder:
        key, certificate = Path(folder, "key"), Path(folder, "crt")
        key.touch(0o600)
        key.write_bytes(raw[name][0])
        certificate.write_bytes(raw[name][1])
        identity = Identity.load(key, certificate)
    certificates = {one: Certificate.parse(pem) for one, pem in listed.items()}
    security = Credentials(identity, certificates)
    return NetworkMesh(name, addresses, security, job="bench", version="1", deadline=60.0)


def _send_meshed(pipe: Connection, addresses: Any, raw: Any, listed: Any, receiver: str) -> None:
    mesh = _mesh("sender", addresses, raw, listed)
    ready = np.ones(0, np.uint8)
    while True:
        megabytes, message = pipe.recv()
        if ready.size != megabytes << 20:
            ready = np.ones(megabytes << 20, np.uint8)
        for start in range(0, ready.size, message << 20):
            mesh.send(receiver, "x", ready[start : start + (message << 20)])


if __name__ == "__main__":
    main()
