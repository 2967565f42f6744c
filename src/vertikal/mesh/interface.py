"""The mesh interface, on one page.

A mesh joins one party to the others of its federation. A message goes from one party to another
under a tag; messages under one (sender, tag) arrive in the order in which they were sent, and those
under other tags do not disturb them. Every transport inherits `send` and `recv`, so that names,
dtypes, lengths and deadlines are checked, and traffic counted, in one place. It supplies
`put_frame` and `get_frame`, through which a mesh around another one also passes frames on.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError, MeshError
from vertikal.mesh import wire

Array: TypeAlias = npt.NDArray[Any]
Record: TypeAlias = Mapping[str, Any]
Payload: TypeAlias = Array | Record

DEADLINE = 300.0
"""Seconds that a wait may last when nobody said otherwise."""


@dataclass
class Traffic:
    """Frames and bytes that left and reached one party, headers included."""

    frames_sent: int = 0
    bytes_sent: int = 0
    frames_received: int = 0
    bytes_received: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def sent(self, size: int) -> None:
        with self._lock:
            self.frames_sent += 1
            self.bytes_sent += size

    def received(self, size: int) -> None:
        with self._lock:
            self.frames_received += 1
            self.bytes_received += size


class Mesh(ABC):
    """One party's end of the mesh."""

    def __init__(self, me: str, parties: tuple[str, ...], deadline: float = DEADLINE) -> None:
        if me not in parties:
            raise InputError.of("me", f"one of the parties {list(parties)}", me)
        if len(set(parties)) != len(parties):
            raise InputError.of("parties", "distinct names", list(parties))
        if not _is_seconds(deadline) or deadline == 0:
            raise InputError.of("deadline", "a positive number of seconds", deadline)
        self.me = me
        self.parties = parties
        self.deadline = deadline
        self.traffic = Traffic()
        self._excused: set[str] = set()

    @property
    def peers(self) -> tuple[str, ...]:
        """Everybody but me, in the order of the federation."""
        return tuple(name for name in self.parties if name != self.me)

    def send(self, to: str, tag: str, payload: Payload) -> int:
        """Send ``payload`` to party ``to``; return the size of its frame in bytes.

        An array may travel by reference: the sender must not write to it afterwards.
        """
        self._check_peer(to)
        frame = wire.frame(self.me, to, tag, payload)
        size = frame.size
        self.put_frame(to, frame)
        self.traffic.sent(size)
        return size

    def recv(self, from_: str, tag: str, timeout: float | None = None) -> Payload:
        """Receive the next message of ``from_`` under ``tag``.

        Raises DeadlineExceeded after ``timeout`` seconds (the mesh's own deadline by default), and
        PeerStopped as soon as it is known that the message cannot come any more. Arrays are
        read-only.
        """
        self._check_peer(from_)
        if timeout is None:
            timeout = self.deadline
        if not _is_seconds(timeout):
            raise InputError.of("timeout", "a number of seconds, not negative", timeout)
        frame = self.get_frame(from_, tag, timeout)
        self.traffic.received(frame.size)
        return frame.payload()

    def recv_array(
        self, from_: str, tag: str, dtype: npt.DTypeLike, shape: tuple[int, ...]
    ) -> Array:
        """Receive an array, and refuse anything but this dtype and shape."""
        payload = self.recv(from_, tag)
        wanted = np.dtype(dtype)
        if not isinstance(payload, np.ndarray) or (payload.dtype, payload.shape) != (wanted, shape):
            came = (
                f"{payload.dtype} {payload.shape}"
                if isinstance(payload, np.ndarray)
                else "a structured message"
            )
            raise MeshError(
                f"{self.me}: {from_} sent {came} under {tag!r}, expected {wanted} {shape}"
            )
        return payload

    def sent_apart(self, to: str, tag: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
        """Count an array that workers of this party send to those of ``to`` by links of their own.

        However they cut it, it counts as the one frame that `send` would have made of it.
        """
        self.traffic.sent(wire.array_size(self.me, to, tag, dtype, shape))

    def received_apart(
        self, from_: str, tag: str, dtype: npt.DTypeLike, shape: tuple[int, ...]
    ) -> None:
        """Count an array that has come from workers of ``from_`` to those of this party."""
        self.traffic.received(wire.array_size(from_, self.me, tag, dtype, shape))

    def excuse(self, name: str) -> None:
        """Let the failure of ``name`` end only waits for itself from now on, not for others."""
        self._check_peer(name)
        self._excused.add(name)

    def _check_peer(self, name: str) -> None:
        if name not in self.parties or name == self.me:
            raise MeshError(
                f"{self.me}: {name!r} is not another party of this mesh; "
                f"those are {list(self.peers)}"
            )

    @abstractmethod
    def put_frame(self, to: str, frame: wire.Frame) -> None:
        """Hand a checked frame to the transport; may wait while the receiver's buffer is full."""

    @abstractmethod
    def get_frame(self, from_: str, tag: str, timeout: float) -> wire.Frame:
        """Take the next frame of ``from_`` under ``tag``, within ``timeout`` seconds."""

    @abstractmethod
    def close(self) -> None:
        """Tell the others that this party is done; what it sent before can still be received."""

    @abstractmethod
    def fail(self, reason: str) -> None:
        """Tell the others that this party stops because of ``reason``; their waits end at once."""


def _is_seconds(value: object) -> bool:
    """Check that a wait of this length has an end."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value < math.inf  # type: ignore[operator]
