"""A device: one client with its connection, for programs that have ratings or columns to add.

    from vertikal.aggregation.device import Device

    with Device.open("alice") as device:
        device.take_part(columns)            # waits for a round, and for its end

It needs NumPy, msgspec and cryptography, neither scikit-learn nor SciPy. Every wait has a deadline.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from vertikal.aggregation.contribution import Contribution
from vertikal.aggregation.device_folder import DeviceFolder, ServerAddress
from vertikal.aggregation.enrolment import Ticket
from vertikal.aggregation.messages import (
    HEAD,
    MOST_ROWS,
    RECORD,
    VECTOR,
    Abandoned,
    AskItems,
    AskMeans,
    AskRows,
    Challenge,
    Done,
    Down,
    Items,
    KernelRows,
    Means,
    Ready,
    Refused,
    RoundPending,
    Up,
    Welcome,
    head,
    packed,
    read_head,
    unpacked_down,
)
from vertikal.aggregation.opened_rounds import OpenedRounds, RoundPolicy
from vertikal.aggregation.participant import Participant
from vertikal.aggregation.task import MOST_ROWS as MOST_ITEMS
from vertikal.aggregation.task import Task
from vertikal.aggregation.tls import check_server, client_context
from vertikal.errors import (
    DeadlineExceeded,
    InputError,
    PeerStopped,
    PeerVisibleError,
    WireError,
)
from vertikal.mesh.wire import MAX_RECORD
from vertikal.secure.secagg.client_keys import SigningKey

Array = npt.NDArray[Any]
T = TypeVar("T")

ANSWER = 60.0
"""Seconds that the server has to answer a request, or to say that a client still waits.

It says so every 15 s, before a round and in each stage of one."""


class Device:
    """One client of an aggregation, connected to its server."""

    def __init__(
        self,
        server: ServerAddress,
        ticket: Ticket,
        key: SigningKey,
        *,
        policy: RoundPolicy | None = None,
        opened: OpenedRounds | None = None,
        seconds: float = ANSWER,
        lock: IO[bytes] | None = None,
    ) -> None:
        self.server = server
        self._seconds = seconds
        self._lock = lock
        self._participant = Participant(
            ticket,
            key,
            server.authority,
            policy or RoundPolicy(),
            OpenedRounds() if opened is None else opened,
        )
        self._socket = self._connect()
        try:
            challenge = self._expect(Challenge)
            fingerprint = server.fingerprint
            self._send(self._participant.greet(challenge, server.aggregation, fingerprint))
            self.task: Task = self._expect(Welcome).task
            self._participant.task = self.task
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(
        cls, folder: Path | str, policy: RoundPolicy | None = None, seconds: float = ANSWER
    ) -> Device:
        """Connect the device whose files are in ``folder``."""
        files = DeviceFolder(Path(folder))
        server, ticket, key = files.server, files.ticket, files.key
        lock = files.lock()
        try:
            return cls(
                server,
                ticket,
                key,
                policy=policy,
                opened=files.opened,
                seconds=seconds,
                lock=lock,
            )
        except BaseException:
            lock.close()
            raise

    @property
    def name(self) -> str:
        return self._participant.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave; in the midst of a round this is a drop-out."""
        with suppress(OSError):
            self._socket.close()
        if self._lock is not None:
            self._lock.close()

    def take_part(
        self,
        columns: Any,
        *,
        seconds: float = 3600.0,
        progress: Callable[[str], object] = bool,
    ) -> int:
        """Add these columns to the next sum and wait for its end; return over how many it is.

        ``columns`` are (rows,) or (rows, own columns) whole numbers. ``progress`` hears what is
        going on. A client that refuses a question hangs up, and raises.
        """
        return self._rounds(Contribution(columns, self.task), seconds, progress)

    def take_part_with(
        self,
        items: Iterable[int],
        *,
        seconds: float = 3600.0,
        progress: Callable[[str], object] = bool,
    ) -> int:
        """Take part as a user that has rated the items of these numbers."""
        return self._rounds(Contribution.of_items(items, self.task), seconds, progress)

    def _rounds(
        self, given: Contribution, seconds: float, progress: Callable[[str], object]
    ) -> int:
        self._participant.give(given)
        self._send(Ready())
        end = time.monotonic() + seconds
        try:
            while True:
                if time.monotonic() > end:
                    raise DeadlineExceeded(
                        f"{self.name}: no round of {self.server.aggregation!r} was finished within "
                        f"{seconds:g} s"
                    )
                said = self._receive()
                if isinstance(said, RoundPending):
                    progress(f"waiting: {said.reason}")
                    continue
                reply = self._participant.answer(said)
                if isinstance(reply, Done):
                    return reply.clients
                if isinstance(reply, np.ndarray):
                    self._send_vector(reply)
                elif reply is not None:
                    self._send(reply)
                if isinstance(said, Abandoned):
                    progress(f"the round was given up: {said.reason}")
                elif self._participant.stage:
                    progress(self._participant.stage)
        except BaseException:
            self.close()
            raise

    def items(self) -> list[str]:
        """Ask for the names of all items, by number."""
        if self.task.kind != "ratings":
            raise InputError(
                f"{self.name}: server {self.server.aggregation!r} sums columns and has no items; "
                "take part with columns"
            )
        names: list[str] = []
        while True:
            self._send(AskItems(len(names)))
            said = self._expect(Items)
            if said.first != len(names) or said.count > MOST_ITEMS:
                raise WireError(f"{self.name}: the server named other items than asked for")
            names += said.names
            if len(names) >= said.count or not said.names:
                self.task = self._grown(len(names))
                return names

    def _grown(self, rows: int) -> Task:
        """Take note of items that have been added since the connection began."""
        task = self.task
        grown = Task(kind=task.kind, rows=rows, most_clients=task.most_clients, tile=task.tile)
        self._participant.task = grown
        return grown

    def means(self) -> tuple[int, Array, Array]:
        """Ask for the finished rounds, the kernel's row means, and how often items were rated."""
        self._send(AskMeans())
        said = self._expect(Means)
        return said.rounds, _numbers(said.means), _numbers(said.popularity)

    def rows(self, items: Array) -> Array:
        """Ask for rows of the normalised kernel, (items, all items)."""
        parts = [self._some_rows(items[i : i + MOST_ROWS]) for i in range(0, len(items), MOST_ROWS)]
        return np.concatenate(parts) if parts else np.zeros((0, self.task.rows))

    def _some_rows(self, items: Array) -> Array:
        self._send(AskRows([int(item) for item in items]))
        said = self._expect(KernelRows)
        if said.rows != len(items) or not 0 < said.items <= MOST_ITEMS:
            raise WireError(f"{self.name}: the server sent other rows than asked for")
        size, kind = read_head(self._read(HEAD))
        if kind != VECTOR or size != 8 * said.rows * said.items:
            raise WireError(f"{self.name}: rows of {size} bytes, which are not those announced")
        return _numbers(self._read(size)).reshape(said.rows, said.items)

    def _connect(self) -> ssl.SSLSocket:
        host, _, port = self.server.address.rpartition(":")
        try:
            plain = socket.create_connection((host.strip("[]"), int(port)), self._seconds)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = client_context().wrap_socket(plain)
        except (OSError, ValueError) as error:
            raise PeerStopped.of(
                self.server.aggregation,
                f"{self.name}: the server at {self.server.address} cannot be reached: {error}",
            ) from None
        try:
            check_server(connection.getpeercert(binary_form=True), self.server.fingerprint)
        except BaseException:
            connection.close()
            raise
        return connection

    def _expect(self, kind: type[T]) -> T:
        said = self._receive()
        if isinstance(said, Refused):
            raise PeerVisibleError(f"{self.name}: the server refuses: {said.reason}")
        if not isinstance(said, kind):
            raise WireError(
                f"{self.name}: the server sent {type(said).__name__}, not {kind.__name__}"
            )
        return said

    def _receive(self) -> Down:
        size, kind = read_head(self._read(HEAD))
        if kind != RECORD or size > MAX_RECORD:
            raise WireError(
                f"{self.name}: a message of {size} bytes, at most {MAX_RECORD} are allowed"
            )
        return unpacked_down(self._read(size))

    def _read(self, size: int) -> bytes:
        body = bytearray(size)
        view, place = memoryview(body), 0
        try:
            while place < size:
                count = self._socket.recv_into(view[place:])
                if not count:
                    raise ConnectionError("it hung up")
                place += count
        except TimeoutError:
            raise DeadlineExceeded(
                f"{self.name}: nothing came from {self._where} for {self._seconds:g} s"
            ) from None
        except (OSError, ConnectionError) as error:
            raise PeerStopped.of(
                self.server.aggregation, f"{self.name}: {self._where} is gone: {error}"
            ) from None
        return bytes(body)

    @property
    def _where(self) -> str:
        """The server, its address and the stage that this client has answered, for errors."""
        stage = self._participant.stage
        after = f", after {stage!r}," if stage else ""
        return f"server {self.server.aggregation!r} at {self.server.address}{after}"

    def _send(self, message: Up) -> None:
        self._write(packed(message))

    def _send_vector(self, values: Array) -> None:
        raw = values.astype(values.dtype.newbyteorder("<"), copy=False)
        self._write(head(raw.nbytes, VECTOR))
        self._write(raw.view(np.uint8).data)

    def _write(self, raw: bytes | memoryview) -> None:
        try:
            self._socket.sendall(raw)
        except TimeoutError:
            raise DeadlineExceeded(
                f"{self.name}: {self._where} took nothing for {self._seconds:g} s"
            ) from None
        except OSError as error:
            raise PeerStopped.of(
                self.server.aggregation, f"{self.name}: {self._where} is gone: {error}"
            ) from None


def _numbers(raw: bytes) -> Array:
    values = np.frombuffer(raw, "<f8")
    if not np.isfinite(values).all():
        raise WireError("the server sent numbers that are not finite")
    return values
