"""The mesh on top of packets: mailboxes, waits, heartbeats, and who waits for whom.

A transport supplies `_post`, which may lose a packet when its link breaks. It calls `_accept` with
each packet that arrives, and `_greet` whenever the way to a peer stands. The mesh does the rest:
chunks are sent again after a break, a slow receiver slows its sender, and a thread tells all peers
every second what this party is doing.
"""

from __future__ import annotations

import os
import threading
import time
from abc import abstractmethod
from collections import deque

from vertikal.errors import InputError, MeshError, SecrecyError, WireError
from vertikal.mesh.interface import DEADLINE, Mesh
from vertikal.mesh.packets import envelope
from vertikal.mesh.packets.envelope import (
    ASK,
    DATA,
    HELLO,
    MAX_TEXT,
    STATE,
    Cut,
    Hello,
    Packet,
    Ready,
    State,
)
from vertikal.mesh.packets.handshake import introduction, meet
from vertikal.mesh.packets.pair import REPORT, WINDOW, Pair
from vertikal.mesh.packets.peer_status import PeerStatus, Wait
from vertikal.mesh.packets.security import Security
from vertikal.mesh.packets.waiting import Timing, WaitingRoom
from vertikal.mesh.wire import PROTOCOL_VERSION, Frame

__all__ = ["CAPACITY", "PacketMesh", "Timing"]

CAPACITY = 64 << 20
"""Bytes of frames that may lie between two programs before the sender waits."""


class PacketMesh(Mesh):
    """One party's end of a mesh of processes."""

    def __init__(
        self,
        me: str,
        parties: tuple[str, ...],
        deadline: float = DEADLINE,
        *,
        security: Security,
        encrypted: tuple[str, ...] = (),
        job: str,
        version: str,
        capacity: int = CAPACITY,
        timing: Timing = Timing(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(me, parties, deadline)
        if capacity < 1:
            raise InputError.of("capacity", "a positive number of bytes", capacity)
        self.doing = ""
        """The present work of this party in a word or two, which the others are told."""
        envelope.prepare_memory()
        self._security = security
        self._capacity = capacity
        self._session = os.urandom(16)
        self._boxes: dict[tuple[str, str], deque[Frame]] = {}
        self._ended, self._reason = "", ""
        self._stopped = threading.Event()
        self._place = parties.index(me)
        now = time.monotonic()
        self._pairs = {
            name: Pair(name, place, name in encrypted, now)
            for place, name in enumerate(parties)
            if name != me
        }
        self._room = WaitingRoom(me, self._pairs, timing, self._excused)
        self._changed = self._room.changed
        federation = security.digest(parties)
        for name, pair in self._pairs.items():
            hello = Hello(
                sender=me,
                receiver=name,
                session=self._session,
                protocol=PROTOCOL_VERSION,
                version=version,
                job=job,
                federation=federation,
                capacity=capacity,
                key=security.public_key,
            )
            pair.hello = introduction(hello, security)
        self._heart = threading.Thread(target=self._beat, name=f"{me} heartbeat", daemon=True)

    @property
    def timing(self) -> Timing:
        return self._room.timing

    @timing.setter
    def timing(self, timing: Timing) -> None:
        self._room.timing = timing

    @abstractmethod
    def _post(self, peer: str, packet: Ready, *, urgent: bool) -> None:
        """Put a packet on its way without waiting; it may be lost if the link is down."""

    def _greet(self, peer: str) -> None:
        """Introduce this party over a new way to ``peer``, and ask for what was lost meanwhile."""
        with self._changed:
            pair = self._pairs[peer]
            pair.lost = None
            self._post_hello(pair, ASK)
            self._tell(pair, resume=True, answer=True)
            self._changed.notify_all()

    def _part(self, peer: str) -> None:
        """Note that the way to ``peer`` broke."""
        with self._changed:
            pair = self._pairs[peer]
            if pair.lost is None:
                pair.lost = time.monotonic()
            self._changed.notify_all()

    def unreachable(self, name: str, reason: str) -> None:
        """Hear why a peer cannot be reached for now; the mesh waits for it in any case."""

    def blame(self, name: str, error: MeshError) -> None:
        """Give up the pair with ``name`` for good; every wait raises ``error`` from now on."""
        with self._changed:
            pair = self._pairs[name]
            pair.fault = pair.fault or error
            self._changed.notify_all()

    def _accept(self, packet: Packet) -> None:
        """Take a packet for this party; the transport has checked its sender."""
        pair = self._pairs[self.parties[packet.sender]]
        try:
            if packet.kind == HELLO:
                self._on_hello(pair, packet)
            elif pair.ready and packet.kind == DATA:
                self._on_data(pair, packet)
            elif pair.ready and packet.kind == STATE:
                self._on_state(pair, packet)
        except SecrecyError as error:
            self.blame(pair.peer, MeshError(f"{self.me}: a message of {pair.peer}: {error}"))
        except WireError as error:
            self.blame(pair.peer, WireError(f"{self.me}: {pair.peer} sent {error}"))
        except MeshError as error:
            self.blame(pair.peer, error)

    def _on_hello(self, pair: Pair, packet: Packet) -> None:
        with self._changed:
            if packet.flags & ASK:
                self._post_hello(pair, 0)
            if meet(self.me, pair, packet.body, self._security):
                pair.heard = time.monotonic()
                self._tell(pair, resume=True)
                self._changed.notify_all()

    def _on_data(self, pair: Pair, packet: Packet) -> None:
        body: bytes | memoryview = packet.body
        if pair.channel is not None:
            body = pair.channel.decrypt(0, packet.number, packet.head, body)
        with self._changed:
            pair.heard = time.monotonic()
            frame = pair.into.take(packet.number, packet.flags, body, self._capacity)
            if frame is not None:
                if (frame.header.sender, frame.header.receiver) != (pair.peer, self.me):
                    raise WireError(
                        f"a frame from {frame.header.sender} to {frame.header.receiver}"
                    )
                self._boxes.setdefault((pair.peer, frame.header.tag), deque()).append(frame)
                self._changed.notify_all()
            if pair.into.unreported >= REPORT:
                self._tell(pair)

    def _on_state(self, pair: Pair, packet: Packet) -> None:
        body: bytes | memoryview = packet.body
        if pair.channel is not None:
            body = pair.channel.decrypt(1, packet.number, packet.head, body)
        state = envelope.decode(body, State)
        with self._changed:
            if packet.number <= pair.states_in:
                return
            pair.states_in, pair.heard = packet.number, time.monotonic()
            news = bool(state.ended) and not pair.ended
            pair.theirs = state
            pair.out.acknowledged(state.received, state.consumed)
            if state.resume:
                for _, kept in pair.out.kept:
                    self._post(pair.peer, kept, urgent=False)
            if state.want:
                pair.into.wanted = True
            if state.answer or news or (state.want and pair.into.told < pair.into.consumed):
                self._tell(pair, resume=state.answer)
            self._changed.notify_all()

    def put_frame(self, to: str, frame: Frame) -> None:
        pair, out = self._pairs[to], self._pairs[to].out
        what = f"room for {frame.header.tag!r}"

        def room() -> bool:
            if pair.ended or (pair.ready and not out.busy and out.room(frame.size, self._capacity)):
                return True
            if pair.ready and not out.asked and not out.room(frame.size, self._capacity):
                out.asked = True
                self._tell(pair, want=True)
            return False

        with self._changed:
            self._room.until(room, to, what, self.deadline)
            if pair.ended:
                return
            out.busy = True
            out.handed += frame.size
        whole = False
        try:
            for flags, pieces in envelope.chunks(frame):
                with self._changed:
                    self._room.until(
                        lambda: bool(pair.ended) or out.kept_bytes < WINDOW, to, what, self.deadline
                    )
                head = envelope.pack_head(DATA, flags, self._place, pair.place, out.next)
                packet = Cut.of(head, *pieces)
                if pair.channel is not None:
                    # Only after the wait, which may fail: a number that was used must be sent.
                    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                    packet = Cut.of(head, pair.channel.encrypt(0, out.next, head, data))
                with self._changed:
                    out.keep(packet)
                    self._post(to, packet, urgent=False)
            whole = True
        finally:
            with self._changed:
                out.busy = False
                if not whole:
                    out.handed -= frame.size
                self._changed.notify_all()

    def get_frame(self, from_: str, tag: str, timeout: float) -> Frame:
        box, pair = (from_, tag), self._pairs[from_]
        with self._changed:
            self._room.until(lambda: bool(self._boxes.get(box)), from_, repr(tag), timeout)
            frame = self._boxes[box].popleft()
            if not self._boxes[box]:
                del self._boxes[box]
            pair.into.consumed += frame.size
            if pair.into.wanted or pair.into.consumed - pair.into.told >= self._capacity // 4:
                pair.into.wanted = False
                self._tell(pair)
            return frame

    def _post_hello(self, pair: Pair, flags: int) -> None:
        head = envelope.pack_head(HELLO, flags, self._place, pair.place, 0)
        self._post(pair.peer, head + pair.hello, urgent=True)

    def _tell(
        self, pair: Pair, *, want: bool = False, resume: bool = False, answer: bool = False
    ) -> None:
        """Tell a peer the state of this party; only called with the lock held."""
        if not pair.ready:
            return
        into = pair.into
        state = State(
            received=into.expected,
            consumed=into.consumed,
            sent=pair.out.next,
            doing=self.doing[:MAX_TEXT],
            waits=self._room.told(),
            ended=self._ended,
            reason=self._reason,
            knows=bool(pair.ended),
            want=want,
            resume=resume,
            answer=answer,
        )
        into.told, into.unreported = into.consumed, 0
        number, pair.states_out = pair.states_out, pair.states_out + 1
        head = envelope.pack_head(STATE, 0, self._place, pair.place, number)
        body = envelope.encode(state)
        if pair.channel is not None:
            body = pair.channel.encrypt(1, number, head, body)
        self._post(pair.peer, head + body, urgent=True)

    def _beat(self) -> None:
        while not self._stopped.wait(self.timing.heartbeat):
            with self._changed:
                for pair in self._pairs.values():
                    self._tell(pair)
                # Whoever waits looks at the clock again: a peer may have been lost for too long.
                self._changed.notify_all()

    def connect(self, timeout: float | None = None) -> None:
        """Wait until every peer has introduced itself; not needed before `send` and `recv`."""
        for name, pair in self._pairs.items():
            with self._changed:
                self._room.until(
                    lambda pair=pair: pair.ready,  # type: ignore[misc]
                    name,
                    "the first contact",
                    self.deadline if timeout is None else timeout,
                )

    def status(self) -> dict[str, PeerStatus]:
        """The status of each peer, as far as this party knows: link, last sign of life, waits."""
        return self._room.status()

    def waits(self) -> list[Wait]:
        """The waits of this party itself at this moment."""
        return self._room.waits()

    def moved(self) -> tuple[int, int]:
        """Count the bytes of frames that came in and that went out so far."""
        moved = self.moved_by_peer().values()
        return sum(into for into, _ in moved), sum(out for _, out in moved)

    def moved_by_peer(self) -> dict[str, tuple[int, int]]:
        """Count the bytes of frames that came from each peer and that went there so far."""
        with self._changed:
            return {
                name: (pair.into.arrived, pair.out.handed) for name, pair in self._pairs.items()
            }

    def close(self) -> None:
        self._end("closed", "")

    def fail(self, reason: str) -> None:
        self._end("failed", reason)

    def _end(self, how: str, reason: str) -> None:
        with self._changed:
            if not self._ended:
                self._ended, self._reason = how, reason[:MAX_TEXT]
            for pair in self._pairs.values():
                self._tell(pair)

    def stop(self, linger: float | None = None) -> None:
        """Close, wait until the others have what was sent to them, and let go of all links.

        ``linger`` bounds that wait; a peer that is lost, or silent, is not waited for.
        """
        self.close()
        until = time.monotonic() + (self.deadline if linger is None else linger)
        with self._changed:
            while time.monotonic() < until and any(
                self._owed(pair, time.monotonic()) for pair in self._pairs.values()
            ):
                self._changed.wait(min(0.1, self.timing.heartbeat))
        self._stopped.set()
        self._release()

    def _owed(self, pair: Pair, now: float) -> bool:
        """Check whether this peer may still need something that this party has."""
        if not pair.ready or pair.fault is not None or pair.heard is None or pair.ended:
            return False
        lost = pair.lost is not None and now - pair.lost > self.timing.patience
        silent = now - pair.heard > max(self.timing.silence, self.timing.patience)
        if lost or silent:
            return False
        return bool(pair.out.kept) or not (pair.theirs and pair.theirs.knows)

    @abstractmethod
    def _release(self) -> None:
        """Let go of threads and links."""
