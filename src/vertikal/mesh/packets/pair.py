"""One pair of parties: numbered chunks each way, a buffer to send them again, and credit.

Pure bookkeeping, without threads or sockets: a packet mesh calls it under its lock. Chunks are
numbered from end to end, so that a link, or a relay in between, may lose or repeat them at will;
the receiver takes each number once and in order. Two limits bound memory: chunks that have not been
acknowledged (the resend buffer), and bytes of frames that the receiving program has not taken.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from vertikal.errors import MeshError, WireError
from vertikal.mesh.packets.envelope import FIRST, LAST, Assembly, Ready, State
from vertikal.mesh.packets.security import Channel
from vertikal.mesh.wire import Frame

WINDOW = 32 << 20
"""Bytes of chunks that may be on their way; more wait at the sender."""
REPORT = WINDOW // 2
"""Bytes of chunks after which they are acknowledged."""


@dataclass
class Outgoing:
    """The way to the peer."""

    next: int = 0
    """The number of the next chunk."""
    kept: deque[tuple[int, Ready]] = field(default_factory=deque)
    """The resend buffer: packets that the peer has not acknowledged. One that is not encrypted
    refers to the array that was sent."""
    kept_bytes: int = 0
    handed: int = 0
    """Bytes of all frames handed over so far."""
    credited: int = 0
    """Bytes of these that the peer's program has taken."""
    busy: bool = False
    """A thread is sending the chunks of a frame; those of another must not come in between."""
    asked: bool = False
    """The peer was asked to tell as soon as there is room."""

    def room(self, size: int, capacity: int) -> bool:
        waiting = self.handed - self.credited
        return waiting == 0 or waiting + size <= capacity

    def keep(self, packet: Ready) -> None:
        self.kept.append((self.next, packet))
        self.kept_bytes += len(packet)
        self.next += 1

    def acknowledged(self, received: int, consumed: int) -> None:
        """Note that the peer has this many chunks, and its program has taken this many bytes."""
        if received > self.next or consumed > self.handed:
            raise WireError(
                f"an acknowledgement of {received} chunks and {consumed} bytes, of {self.next} and "
                f"{self.handed} that were sent to it"
            )
        while self.kept and self.kept[0][0] < received:
            self.kept_bytes -= len(self.kept.popleft()[1])
        if consumed > self.credited:
            self.credited, self.asked = consumed, False


@dataclass
class Incoming:
    """The way from the peer."""

    expected: int = 0
    """The number of the next chunk to be taken."""
    arrived: int = 0
    consumed: int = 0
    told: int = 0
    """The value of ``consumed`` that the peer was last told."""
    unreported: int = 0
    """Bytes of chunks since the last acknowledgement."""
    wanted: bool = False
    """The peer waits for room."""
    _assembly: Assembly | None = None

    def take(
        self, number: int, flags: int, body: bytes | memoryview, capacity: int
    ) -> Frame | None:
        """Take a chunk. Return the frame that it completes; None for any other chunk."""
        if number != self.expected:
            return None
        self.expected += 1
        self.unreported += len(body)
        if flags & FIRST:
            # A frame that was given up half-way is replaced by the next one.
            self._assembly = Assembly(body)
        elif self._assembly is None:
            raise WireError(f"chunk {number}, which continues a frame that has not begun")
        else:
            self._assembly.add(body)
        if not flags & LAST:
            return None
        frame, self._assembly = self._assembly.frame(), None
        waiting = self.arrived - self.consumed
        if waiting and waiting + frame.size > capacity:
            raise WireError(
                f"so much that {waiting + frame.size} bytes wait here; {capacity} were agreed"
            )
        self.arrived += frame.size
        return frame


@dataclass
class Pair:
    """One peer, as a party sees it."""

    peer: str
    place: int
    encrypted: bool
    """True for a pair that speaks through a relay, encrypted from end to end."""
    since: float
    """The time at which this party began to wait for the peer."""
    hello: bytes = b""
    """This party's introduction to the peer, signed."""
    session: bytes = b""
    """The peer's process; empty before its hello."""
    channel: Channel | None = None
    lost: float | None = None
    """The time at which the way to the peer broke; None while it stands or was never there."""
    heard: float | None = None
    theirs: State | None = None
    """The last state that the peer told."""
    fault: MeshError | None = None
    states_out: int = 0
    states_in: int = -1
    out: Outgoing = field(default_factory=Outgoing)
    into: Incoming = field(default_factory=Incoming)

    @property
    def ready(self) -> bool:
        return bool(self.session)

    @property
    def ended(self) -> str:
        """Empty while the peer works, else "closed" or "failed"."""
        return self.theirs.ended if self.theirs else ""

    @property
    def all_here(self) -> bool:
        """True once everything that the peer said it had sent has arrived."""
        return self.theirs is None or self.into.expected >= self.theirs.sent
