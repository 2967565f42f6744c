"""The standing links of a party's service: one per peer, for control messages and for all runs.

One port serves everything. The head of a parcel names its kind (a control message, a packet of a
run, or a relay's notice), its sender and its receiver. Parcels between two parties that only dial
are passed on by the relay, which is the first listening party of the federation file. It checks
each before: one that its receiver would refuse ends the link of the party that sent it. When a link
breaks or comes back, or a peer's process was started again, all users of the links are told.

    1 byte   kind: control, run or notice
    8 bytes  run, 8 bytes sender, 8 bytes receiver: heads of SHA-256 digests
    body     a packet of the run's mesh, or a small message
"""

from __future__ import annotations

import hashlib
import itertools
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
from vertikal.mesh.network_links import FLUSH, Dialler, Greeting, Link, Listener
from vertikal.mesh.packets import envelope
from vertikal.node.config.federation_file import FederationFile
from vertikal.node.rate_limit import RateLimit
from vertikal.records import msgpack_reader
from vertikal.secure.keys.credentials import Credentials

HEAD = struct.Struct(">B8s8s8s")
CONTROL, RUN, NOTICE = 1, 2, 3
MAX_CONTROL = 256 << 10
CONTROL_MESSAGES = (1000, 5.0)
"""Control messages that one party may send another: so many, in so many seconds."""
CONTROL_BYTES = (32 << 20, 8.0)
"""The same for their bytes. The longest beat has 12 MiB."""
RELAY_CAPACITY = 64 << 20
"""Bytes that a relay holds of one party for another before it reads more slowly from the first."""
REDIAL = 5.0
"""Seconds until a peer that refused this party is dialled again."""
STALE = 5.0
"""Seconds of silence after which the link of a new process may replace that of an old one."""


def short_name(text: str) -> bytes:
    """Shorten the name of a party or of a run to eight bytes."""
    return hashlib.sha256(text.encode()).digest()[:8]


class ControlQuota:
    """Bounds the control messages of one party to another, in number and in bytes."""

    def __init__(self) -> None:
        self._messages = RateLimit(*CONTROL_MESSAGES)
        self._bytes = RateLimit(*CONTROL_BYTES)

    def take(self, size: int) -> bool:
        return self._messages.take() and self._bytes.take(size)


class Notice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A relay's message that another party's link to it has come up or gone down."""

    party: str
    up: bool
    session: bytes


_read_notice = msgpack_reader(Notice)


@dataclass
class Presence:
    """The state of one peer: up if it can be reached, directly or through the relay."""

    up: bool = False
    session: bytes = b""
    """Names the peer's process."""
    changed: float = 0.0
    """Time of the last change of ``up`` or ``session``, by the monotonic clock."""
    heard: float = 0.0
    """Time of the last parcel over its link, by the same clock."""
    fault: str = ""
    """Reason why it cannot be reached, if there is one beyond its absence."""


class AttachedMesh(Protocol):
    """A mesh whose packets travel over the links, and which is told when a peer comes or goes."""

    me: str
    parties: tuple[str, ...]
    run: bytes

    def peer_up(self, name: str) -> None: ...
    def peer_down(self, name: str) -> None: ...
    def peer_restarted(self, name: str) -> None: ...
    def peer_removed(self, name: str) -> None: ...
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
        on_nonsense: Callable[[str, str], None],
    ) -> None:
        """``on_nonsense`` hears which peer sent something that was refused, and what."""
        self.me = me
        self._on_control = on_control
        self._on_presence = on_presence
        self.on_nonsense = on_nonsense
        self._lock = threading.RLock()
        self._gone: set[bytes] = set()
        """Short names of members that were removed."""
        self._quotas: dict[tuple[str, str], ControlQuota] = {}
        self._go_by(federation, credentials)
        self._bind = federation.member(me).bind
        self.links: dict[str, Link] = {}
        self._sessions: dict[str, bytes] = {}
        self._presence = {name: Presence() for name in self.parties if name != me}
        self._meshes: dict[bytes, AttachedMesh] = {}
        self._diallers: dict[str, Dialler] = {}
        self._timers: set[threading.Timer] = set()
        self._stopped = False
        self.greeting = Greeting(me, os.urandom(16))
        mine = self._addresses[me]
        self._listener = (
            Listener(self, self._bind or mine, credentials, plaintext=False) if mine else None
        )

    def _go_by(self, federation: FederationFile, credentials: Credentials) -> None:
        """Take members, keys and addresses from this file."""
        self.parties = federation.names
        self._keys = {member.name: member.fingerprint for member in federation.members}
        self._credentials = credentials
        self._addresses = federation.addresses()
        self.relay = next(name for name in self.parties if self._addresses[name])
        mine = self._addresses[self.me]
        self._direct = {
            name for name in self.parties if name != self.me and (self._addresses[name] or mine)
        }
        self._names = {short_name(name): name for name in self.parties}
        self._quotas = {
            pair: self._quotas.get(pair) or ControlQuota()
            for pair in itertools.permutations(self.parties, 2)
        }

    def adopt(self, federation: FederationFile, credentials: Credentials) -> None:
        """Go by a changed federation file, with some members less or with new keys.

        Links of removed members end, once what lies ready for them is sent. A link to a party with
        a new key ends at once, and comes back under that key.
        """
        with self._lock:
            keys, relay = self._keys, self.relay
            removed = [name for name in self._presence if name not in federation.names]
            self._go_by(federation, credentials)
            renewed = [name for name in self._presence if self._keys.get(name) != keys[name]]
            ended = [self.links[name] for name in renewed if name in self.links]
            leaving = [self.links.pop(name) for name in removed if name in self.links]
            diallers = [self._diallers.pop(name) for name in removed if name in self._diallers]
            for name in removed:
                self._gone.add(short_name(name))
                del self._presence[name]
                self._sessions.pop(name, None)
            meshes = [mesh for mesh in self._meshes.values() if {*removed} & {*mesh.parties}]
            for dialler in self._diallers.values():
                dialler.trust(credentials)
            if self._listener:
                self._listener.trust(credentials)
        for mesh in meshes:
            for name in removed:
                if name in mesh.parties:
                    mesh.peer_removed(name)
        if leaving or diallers:
            # In a thread of its own: this one may be reading from a link that ends.
            threading.Thread(target=self._let_go, args=(leaving, diallers), daemon=True).start()
        for link in ended:
            if link not in leaving:
                link.close()
        if relay != self.relay:
            self._change_relay()

    def _let_go(self, links: list[Link], diallers: list[Dialler]) -> None:
        for link in links:
            link.outbox.finish()
        for dialler in diallers:
            dialler.stop()
        if links and not diallers:
            time.sleep(FLUSH)
        for link in links:
            link.close()

    def _change_relay(self) -> None:
        """Speak through another relay, or be it."""
        if self.me != self.relay:
            for name in self.relayed(self.parties):
                self._present(name, False, b"")
            # The new relay may have announced all parties already, before this one would listen.
            # It does so again to a link that comes up.
            with self._lock:
                link = self.links.get(self.relay)
            if link is not None:
                link.close()
            return
        for name, one in self.presence().items():
            if one.up:
                self._announce(name, True, one.session)

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
            links = list(self.links.values())
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
        """Return a copy of the state of every other party."""
        with self._lock:
            return {
                name: Presence(one.up, one.session, one.changed, one.heard, one.fault)
                for name, one in self._presence.items()
            }

    def is_up(self, name: str) -> bool:
        with self._lock:
            return name in self._presence and self._presence[name].up

    def attach(self, mesh: AttachedMesh) -> None:
        """Hand the parcels of its run to this mesh from now on."""
        with self._lock:
            if mesh.run in self._meshes:
                raise MeshError(f"{self.me}: this run is under way already")
            self._meshes[mesh.run] = mesh

    def detach(self, mesh: AttachedMesh) -> None:
        with self._lock:
            if self._meshes.get(mesh.run) is mesh:
                del self._meshes[mesh.run]

    def post(self, to: str, run: bytes, packet: bytes, *, urgent: bool) -> None:
        """Send a packet of a run; it is lost if there is no link."""
        self._send(to, RUN, run, packet, urgent=urgent)

    def tell(self, to: str, message: bytes) -> None:
        """Send a control message; it is lost if there is no link."""
        if len(message) > MAX_CONTROL:
            raise WireError(f"control message of {len(message)} bytes, at most {MAX_CONTROL}")
        self._send(to, CONTROL, bytes(8), message, urgent=True)

    def _send(self, to: str, kind: int, run: bytes, body: bytes, *, urgent: bool) -> None:
        if to not in self._presence:
            # A member that has left: the relay would break a link that still names it.
            return
        with self._lock:
            link = self.links.get(to if to in self._direct else self.relay)
        if link is not None:
            head = HEAD.pack(kind, run, short_name(self.me), short_name(to))
            link.outbox.put(head + body, urgent=urgent)

    def _dials(self, name: str) -> bool:
        """Tell which of two listening parties dials: the later one in the federation file."""
        return not self._addresses[self.me] or self.parties.index(self.me) > self.parties.index(
            name
        )

    def _dial(self, name: str) -> None:
        with self._lock:
            if self._stopped or name not in self._presence:
                return
            dialler = Dialler(
                self, name, self._addresses[name] or "", self._credentials, plaintext=False
            )
            self._diallers[name] = dialler
            dialler.start()

    # Called by the links.

    def admit(self, name: str, session: bytes) -> None:
        """Let a peer's process in, unless another living process of that name is here."""
        with self._lock:
            if name not in self._presence:
                raise IdentityError(f"{name!r} is not another party of this federation")
            known = self._sessions.get(name)
            alive = name in self.links and time.monotonic() - self._presence[name].heard < STALE
            if known not in (None, session) and alive:
                raise NameTaken(
                    f"two processes claim the name {name!r}: another service is connected; end "
                    "one of them"
                )
            self._sessions[name] = session

    def link_up(self, link: Link) -> None:
        with self._lock:
            if link.peer not in self._presence:
                raise WireError(f"{link.peer!r} is not another party of this federation")
            old = self.links.get(link.peer)
            self.links[link.peer] = link
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
            if self.links.get(link.peer) is not link:
                return
            del self.links[link.peer]
        self._present(link.peer, False, b"", lost=link.peer)
        if link.peer == self.relay:
            for name in self.relayed(self.parties):
                self._present(name, False, b"", lost=link.peer)
        with self._lock:
            if self.me == self.relay and link.peer not in self.links:
                self._announce(link.peer, False, b"")

    def arrived(self, raw: bytes, link: Link) -> None:
        """Take in a parcel for this party, or pass it on; WireError if it is malformed."""
        try:
            self._sort(raw, link)
        except WireError as error:
            if not link.dialled:
                # Who was dialled is blamed by its dialler.
                self.on_nonsense(link.peer, f"its link was ended, for it sent {error}")
            raise

    def _sort(self, raw: bytes, link: Link) -> None:
        if len(raw) < HEAD.size:
            raise WireError(f"parcel of {len(raw)} bytes, its head alone has {HEAD.size}")
        kind, run, sender_id, receiver_id = HEAD.unpack_from(raw)
        sender, receiver = self._names.get(sender_id), self._names.get(receiver_id)
        if {sender_id, receiver_id} & self._gone and link.peer in self._presence:
            # Who sent it or passed it on has not heard yet that a member was removed.
            return
        if sender is None or receiver is None or sender == receiver:
            raise WireError("a parcel whose sender or receiver is not in the federation file")
        if sender != link.peer and not (link.peer == self.relay and sender not in self._direct):
            raise WireError(f"a parcel of {sender} over the link of {link.peer}")
        self._check_parcel(kind, raw, sender)
        if kind == CONTROL and not self._quotas[sender, receiver].take(len(raw)):
            self.on_nonsense(
                sender,
                f"more than {CONTROL_MESSAGES[0]} messages to {receiver} in {CONTROL_MESSAGES[1]:g}"
                f" s, or {CONTROL_BYTES[0]} bytes in {CONTROL_BYTES[1]:g} s; the rest is dropped",
            )
            return
        if receiver != self.me:
            self._pass_on(sender, receiver, raw, urgent=kind != RUN)
            return
        with self._lock:
            self._presence[link.peer].heard = time.monotonic()
            target = self._meshes.get(run) if kind == RUN else None
        if kind == CONTROL:
            self._on_control(sender, raw[HEAD.size :])
        elif kind == NOTICE:
            self._noticed(raw[HEAD.size :])
        elif target is not None and sender in target.parties:
            target.parcel(sender, raw[HEAD.size :])

    def _check_parcel(self, kind: int, raw: bytes, sender: str) -> None:
        """Refuse a parcel that its receiver would refuse, whoever that is."""
        if kind == RUN:
            envelope.read_envelope(raw, HEAD.size)
        elif kind == CONTROL:
            size = len(raw) - HEAD.size
            if size > MAX_CONTROL:
                raise WireError(f"a control message of {size} bytes, at most {MAX_CONTROL}")
        elif kind != NOTICE:
            raise WireError(f"a parcel of unknown kind {kind}")
        elif sender != self.relay:
            raise WireError(f"a notice of {sender}, which is not the relay")

    def unreachable(self, name: str, reason: str) -> None:
        """Note why a peer that is dialled cannot be reached for now."""
        with self._lock:
            if name in self._presence and not self._presence[name].up:
                self._presence[name].fault = reason

    def blame(self, name: str, error: MeshError) -> None:
        """Note why a link cannot be made, and try again later: files and versions change."""
        with self._lock:
            if self._stopped or name not in self._presence:
                return
            restarted = isinstance(error, PeerStopped)
            self._presence[name].fault = "" if restarted else " ".join(str(error).split())
            timer = threading.Timer(0.05 if restarted else REDIAL, self._dial, (name,))
            timer.daemon = True
            self._timers = {one for one in self._timers if one.is_alive()} | {timer}
        timer.start()

    def restarted(self, name: str) -> MeshError:
        """Tell all meshes that the listening party ``name`` answered as another process."""
        with self._lock:
            meshes = [mesh for mesh in self._meshes.values() if name in mesh.parties]
        for mesh in meshes:
            mesh.peer_restarted(name)
        return PeerStopped(f"{self.me}: {name} was started again")

    def _pass_on(self, sender: str, receiver: str, raw: bytes, *, urgent: bool) -> None:
        if self.me != self.relay:
            raise WireError(f"a parcel for {receiver} at {self.me}, which relays nothing")
        if self._addresses[sender] or self._addresses[receiver]:
            # Its receiver takes such a parcel from nobody but the sender.
            raise WireError(f"a parcel for {receiver}, to which {sender} has a link of its own")
        with self._lock:
            onward = self.links.get(receiver)
        if onward is not None:
            onward.outbox.put(raw, urgent=urgent, source=sender, limit=RELAY_CAPACITY)

    def _announce(self, party: str, up: bool, session: bytes) -> None:
        for name in list(self._presence):
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
            if lost in self.links or name not in self._presence:
                # This is late news of an older link, or of a member that was removed.
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
            meshes = [mesh for mesh in self._meshes.values() if name in mesh.parties]
        for mesh in meshes:
            if restarted:
                mesh.peer_restarted(name)
            elif up:
                mesh.peer_up(name)
            else:
                mesh.peer_down(name)
        self._on_presence(name, up)
