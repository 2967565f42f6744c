"""The standing links of a party's service: one per peer, for control messages and for all runs.

One port serves everything. A parcel on a link says for what it is (a control message, a run, or a
relay's notice) and between whom; parcels between two parties that only dial are passed on by the
first listening party of the federation file. Links break and come back, and a party's process may
be another one afterwards; whoever uses the links is told.

    1 byte   kind: control, run or notice
    8 bytes  run, 8 bytes sender, 8 bytes receiver: heads of SHA-256 digests
    body     a packet of the run's mesh, or a small message
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from vertikal.errors import (
    IdentityError,
    MeshError,
    NameTaken,
    PeerStopped,
    WireError,
)
from vertikal.mesh.network_links import Dialler, Greeting, Link, Listener
from vertikal.node.config.federation_file import FederationFile
from vertikal.records import msgpack_reader
from vertikal.secure.keys.credentials import Credentials

HEAD = struct.Struct(">B8s8s8s")
CONTROL, RUN, NOTICE = 1, 2, 3
MAX_CONTROL = 256 << 10
RELAY_CAPACITY = 256 << 20
REDIAL = 5.0
"""Seconds after which a peer that refused this party is dialled again."""
STALE = 5.0
"""Seconds of silence after which a link gives way to one of a new process."""


def short_name(text: str) -> bytes:
    """Eight bytes that stand for a party's name or for a run."""
    return hashlib.sha256(text.encode()).digest()[:8]


class Notice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a relay says of another party's link to it."""

    party: str
    up: bool
    session: bytes


_read_notice = msgpack_reader(Notice)


@dataclass
class Presence:
    """Whether a peer can be reached, and by which process of it."""

    up: bool = False
    session: bytes = b""
    changed: float = 0.0
    heard: float = 0.0
    fault: str = ""


class Run(Protocol):
    """A mesh that travels over the links."""

    me: str
    parties: tuple[str, ...]
    run: bytes

    def peer_up(self, name: str) -> None: ...
    def peer_down(self, name: str) -> None: ...
    def peer_restarted(self, name: str) -> None: ...
    def parcel(self, sender: str, body: bytes) -> None: ...


class StandingLinks:
    """One party's end of the standing links."""

    def __init__(
        self,
        me: str,
        federation: FederationFile,
        credentials: Credentials,
        on_control: Callable[[str, bytes], None],
        on_presence: Callable[[str, bool], None],
    ) -> None:
        self.me = me
        self.parties = federation.names
        self._credentials = credentials
        self._on_control = on_control
        self._on_presence = on_presence
        self._addresses = federation.addresses()
        self._bind = federation.member(me).bind
        listening = [name for name in self.parties if self._addresses[name]]
        self.relay = listening[0]
        mine = self._addresses[me]
        self._direct = {
            name for name in self.parties if name != me and (self._addresses[name] or mine)
        }
        self._names = {short_name(name): name for name in self.parties}
        self._lock = threading.RLock()
        self._links: dict[str, Link] = {}
        self._sessions: dict[str, bytes] = {}
        self._presence = {name: Presence() for name in self.parties if name != me}
        self._runs: dict[bytes, Run] = {}
        self._diallers: dict[str, Dialler] = {}
        self._timers: set[threading.Timer] = set()
        self._stopped = False
        self.greeting = Greeting(me, os.urandom(16))
        self._listener = (
            Listener(self, self._bind or mine, credentials, plaintext=False) if mine else None
        )

    def start(self) -> None:
        if self._listener:
            self._listener.start()
        for name, address in self._addresses.items():
            if address and name in self._direct and self._dials(name):
                self._dial(name)

    def stop(self) -> None:
        """Let go of all links."""
        with self._lock:
            self._stopped = True
            timers, diallers = list(self._timers), list(self._diallers.values())
            links = list(self._links.values())
        for timer in timers:
            timer.cancel()
        for link in links:
            link.outbox.finish()
        for dialler in diallers:
            dialler.stop()
        if self._listener:
            self._listener.stop()
        for link in links:
            link.close()

    def relayed(self, parties: tuple[str, ...]) -> tuple[str, ...]:
        """Those of ``parties`` that this party speaks to through the relay."""
        return tuple(name for name in parties if name != self.me and name not in self._direct)

    def presence(self) -> dict[str, Presence]:
        """How every other party of the federation stands."""
        with self._lock:
            return {
                name: Presence(one.up, one.session, one.changed, one.heard, one.fault)
                for name, one in self._presence.items()
            }

    def is_up(self, name: str) -> bool:
        with self._lock:
            return self._presence[name].up

    def attach(self, run: Run) -> None:
        """From now on parcels of this run are handed to it."""
        with self._lock:
            if run.run in self._runs:
                raise MeshError(f"{self.me}: this run is under way already")
            self._runs[run.run] = run

    def detach(self, run: Run) -> None:
        with self._lock:
            if self._runs.get(run.run) is run:
                del self._runs[run.run]

    def post(self, to: str, run: bytes, packet: bytes, *, urgent: bool) -> None:
        """A packet of a run on its way; lost if there is no link."""
        self._send(to, RUN, run, packet, urgent=urgent)

    def tell(self, to: str, message: bytes) -> None:
        """A control message on its way; lost if there is no link."""
        if len(message) > MAX_CONTROL:
            raise WireError(f"control message of {len(message)} bytes, at most {MAX_CONTROL}")
        self._send(to, CONTROL, bytes(8), message, urgent=True)

    def _send(self, to: str, kind: int, run: bytes, body: bytes, *, urgent: bool) -> None:
        if to not in self._presence:
            # A member that has left: the relay would refuse the link of who still speaks to it.
            return
        with self._lock:
            link = self._links.get(to if to in self._direct else self.relay)
        if link is not None:
            head = HEAD.pack(kind, run, short_name(self.me), short_name(to))
            link.outbox.put(head + body, urgent=urgent)

    def _dials(self, name: str) -> bool:
        """Of two parties that both listen, the later one in the federation dials."""
        return not self._addresses[self.me] or self.parties.index(self.me) > self.parties.index(
            name
        )

    def _dial(self, name: str) -> None:
        with self._lock:
            if self._stopped:
                return
            dialler = Dialler(
                self, name, self._addresses[name] or "", self._credentials, plaintext=False
            )
            self._diallers[name] = dialler
            dialler.start()

    # What the links tell their owner.

    def admit(self, name: str, session: bytes) -> None:
        """Let a peer's process in, unless another living process of that name is here."""
        with self._lock:
            if name not in self._presence:
                raise IdentityError(f"{name!r} is not another party of this federation")
            known = self._sessions.get(name)
            alive = name in self._links and time.monotonic() - self._presence[name].heard < STALE
            if known not in (None, session) and alive:
                raise NameTaken(
                    f"two processes claim the name {name!r}: another service is connected; end "
                    "one of them"
                )
            self._sessions[name] = session

    def link_up(self, link: Link) -> None:
        with self._lock:
            old = self._links.get(link.peer)
            self._links[link.peer] = link
            session = self._sessions.get(link.peer, b"")
        if old is not None:
            old.close()
        self._present(link.peer, True, session)
        if self.me == self.relay:
            self._announce(link.peer, True, session)
            for name, one in self.presence().items():
                if name != link.peer and one.up:
                    self._notify(link.peer, Notice(name, True, one.session))

    def link_down(self, link: Link) -> None:
        with self._lock:
            if self._links.get(link.peer) is not link:
                return
            del self._links[link.peer]
        self._present(link.peer, False, b"", lost=link.peer)
        if link.peer == self.relay:
            for name in self.relayed(self.parties):
                self._present(name, False, b"", lost=link.peer)
        with self._lock:
            if self.me == self.relay and link.peer not in self._links:
                self._announce(link.peer, False, b"")

    def arrived(self, raw: bytes, link: Link) -> None:
        """A parcel came over this link: for me, or to be passed on. WireError for nonsense."""
        if len(raw) < HEAD.size:
            raise WireError(f"parcel of {len(raw)} bytes")
        kind, run, sender_id, receiver_id = HEAD.unpack_from(raw)
        sender, receiver = self._names.get(sender_id), self._names.get(receiver_id)
        if sender is None or receiver is None or sender == receiver:
            raise WireError("a parcel between parties that the federation file does not list")
        if sender != link.peer and not (link.peer == self.relay and sender not in self._direct):
            raise WireError(f"a parcel of {sender} over the link of {link.peer}")
        if receiver != self.me:
            self._pass_on(receiver, raw, urgent=kind != RUN)
            return
        with self._lock:
            self._presence[link.peer].heard = time.monotonic()
            target = self._runs.get(run) if kind == RUN else None
        if kind == RUN:
            if target is not None and sender in target.parties:
                target.parcel(sender, raw[HEAD.size :])
        elif kind == CONTROL:
            if len(raw) > HEAD.size + MAX_CONTROL:
                raise WireError(f"control message of {len(raw)} bytes")
            self._on_control(sender, raw[HEAD.size :])
        elif kind == NOTICE and sender == self.relay:
            self._noticed(raw[HEAD.size :])
        else:
            raise WireError(f"parcel of unknown kind {kind}")

    def blame(self, name: str, error: MeshError) -> None:
        """A link cannot be made as things are; try again later, for files and versions change."""
        with self._lock:
            if self._stopped:
                return
            restarted = isinstance(error, PeerStopped)
            self._presence[name].fault = "" if restarted else " ".join(str(error).split())
            timer = threading.Timer(0.05 if restarted else REDIAL, self._dial, (name,))
            timer.daemon = True
            self._timers = {one for one in self._timers if one.is_alive()} | {timer}
        timer.start()

    def restarted(self, name: str) -> MeshError:
        """The listening party ``name`` answered as another process than before."""
        with self._lock:
            runs = [run for run in self._runs.values() if name in run.parties]
        for run in runs:
            run.peer_restarted(name)
        return PeerStopped(f"{self.me}: {name} was started again")

    def _pass_on(self, receiver: str, raw: bytes, *, urgent: bool) -> None:
        if self.me != self.relay:
            raise WireError(f"a parcel for {receiver} at {self.me}, which relays nothing")
        with self._lock:
            onward = self._links.get(receiver)
        if onward is not None:
            onward.outbox.put(raw, urgent=urgent, limit=RELAY_CAPACITY)

    def _announce(self, party: str, up: bool, session: bytes) -> None:
        for name in self._presence:
            if name != party:
                self._notify(name, Notice(party, up, session))

    def _notify(self, to: str, notice: Notice) -> None:
        self._send(to, NOTICE, bytes(8), msgspec.msgpack.encode(notice), urgent=True)

    def _noticed(self, body: bytes) -> None:
        try:
            notice = _read_notice(body)
        except (msgspec.DecodeError, ValueError) as error:
            raise WireError(f"notice: {error}") from None
        if notice.party in self._presence and notice.party not in self._direct:
            self._present(notice.party, notice.up, notice.session)

    def _present(self, name: str, up: bool, session: bytes, lost: str = "") -> None:
        """Note that a party can be reached, or that it cannot since the link to ``lost`` ended."""
        now = time.monotonic()
        with self._lock:
            if lost in self._links:
                # The end of an older link, told late: the newer one stands.
                return
            one = self._presence[name]
            if one.up == up and (not up or one.session == session):
                restarted = False
            else:
                restarted = up and one.session not in (b"", session)
                one.changed = now
            one.up, one.heard = up, now if up else one.heard
            if up:
                one.session, one.fault = session, ""
            runs = [run for run in self._runs.values() if name in run.parties]
        for run in runs:
            if restarted:
                run.peer_restarted(name)
            elif up:
                run.peer_up(name)
            else:
                run.peer_down(name)
        self._on_presence(name, up)
