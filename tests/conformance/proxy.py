"""A proxy on loopback that stands between two parties and misbehaves when told to."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Proxy:
    """Passes bytes on to ``target``; can delay, shape, spoil and hold them, or cut connections.

    ``spoil`` may change each piece that travels; ``rate`` is in bytes per second, each way.
    """

    def __init__(
        self,
        target: int,
        delay: float = 0.0,
        rate: float | None = None,
        spoil: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._target = target
        self._delay, self._rate, self.spoil = delay, rate, spoil
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._closed = False
        self.refusing = False
        self.passed = 0
        self.cut_after: int | None = None
        self.cuts = 0
        self._flowing = threading.Event()
        self._flowing.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._start(self._accept)

    def cut(self) -> None:
        """Break every connection, in the middle of whatever it carries."""
        with self._lock:
            sockets, self._sockets = self._sockets, []
            self.cuts += 1
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Hold all bytes, both ways, and break nothing: as if the machine behind it stood still."""
        self._flowing.clear()
        try:
            yield
        finally:
            self._flowing.set()

    def close(self) -> None:
        self._closed = True
        self._listener.close()
        self.cut()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._listener.accept()
            except OSError:
                continue
            try:
                if self.refusing:
                    raise ConnectionRefusedError
                far = socket.create_connection(("127.0.0.1", self._target), 20.0)
                far.settimeout(None)
            except OSError:
                near.close()
                continue
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._sockets += [near, far]
            self._start(self._pass, near, far)
            self._start(self._pass, far, near)

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        """Read at once, write later: a delay does not lower the rate."""
        waiting: list[tuple[float, bytes]] = []
        ready = threading.Condition()

        def write() -> None:
            free = 0.0
            while True:
                with ready:
                    while not waiting:
                        ready.wait()
                    due, piece = waiting.pop(0)
                    ready.notify_all()
                if not piece:
                    break
                free = max(free, due)
                time.sleep(max(0.0, free - time.monotonic()))
                if self._rate:
                    free += len(piece) / self._rate
                self._flowing.wait()
                try:
                    sink.sendall(self.spoil(piece) if self.spoil else piece)
                except OSError:
                    break
            for one in (source, sink):
                one.close()

        self._start(write)
        while True:
            try:
                piece = source.recv(1 << 16)
            except OSError:
                piece = b""
            with ready:
                while len(waiting) > 256 and piece:
                    ready.wait(0.1)
                waiting.append((time.monotonic() + self._delay, piece))
                ready.notify_all()
            self.passed += len(piece)
            if self.cut_after is not None and self.passed > self.cut_after:
                self.cut_after = None
                self.cut()
            if not piece:
                return
