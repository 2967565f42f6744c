"""The network mesh: parties on different machines, over gRPC with mutual TLS.

One party listens and all others dial out. Two parties of which neither listens speak through the
first listening one, the relay, encrypted from end to end. Where several parties listen, a pair in
which one can be dialled has a link of its own. Start order does not matter; a link that breaks is
dialled again, and `packet_mesh` sees to it that nothing is lost, repeated or out of order.
"""

from __future__ import annotations

from collections.abc import Mapping

from vertikal.errors import IdentityError, InputError, NameTaken, PeerStopped, WireError
from vertikal.mesh.addresses import check_address
from vertikal.mesh.interface import DEADLINE
from vertikal.mesh.network_links import Dialler, Greeting, Link, Listener
from vertikal.mesh.packets import envelope
from vertikal.mesh.packets.envelope import NOTICE, LinkNotice, Ready
from vertikal.mesh.packets.packet_mesh import CAPACITY, PacketMesh, Timing
from vertikal.mesh.packets.security import NetworkSecurity

RELAY_CAPACITY = 64 << 20
"""Bytes that a relay holds of one party for another before it reads more slowly from the first."""


class NetworkMesh(PacketMesh):
    """One party's end of the network mesh.

    ``addresses`` names all parties in the order of the federation; ``host:port`` for those that
    listen, None for the others. ``bind`` is where this party listens if that differs from what the
    others dial. ``plaintext`` leaves out TLS and is refused for any address but loopback.
    """

    def __init__(
        self,
        me: str,
        addresses: Mapping[str, str | None],
        security: NetworkSecurity,
        *,
        job: str,
        version: str,
        deadline: float = DEADLINE,
        capacity: int = CAPACITY,
        bind: str | None = None,
        plaintext: bool = False,
        timing: Timing = Timing(),  # noqa: B008 (frozen)
    ) -> None:
        parties = tuple(addresses)
        listening = [name for name in parties if addresses[name]]
        if not listening:
            raise InputError.of("addresses", "given for one party at least: somebody listens", [])
        for address in (bind, *addresses.values()):
            if address is not None:
                check_address(address, plaintext=plaintext)
        self.relay = listening[0]
        direct = {name for name in parties if name != me and (addresses[name] or addresses.get(me))}
        super().__init__(
            me,
            parties,
            deadline,
            security=security,
            encrypted=tuple(name for name in parties if name != me and name not in direct),
            job=job,
            version=version,
            capacity=capacity,
            timing=timing,
        )
        self._direct = direct
        self._listening = frozenset(listening)
        self._links: dict[str, Link] = {}
        self._sessions: dict[str, bytes] = {}
        mine = addresses[me]
        self._listener = (
            Listener(self, bind or mine, security, plaintext=plaintext) if mine else None
        )
        self._diallers = [
            Dialler(self, name, address, security, plaintext=plaintext)
            for name, address in addresses.items()
            if address and name in direct and self._dials(name, addresses)
        ]
        self.greeting = Greeting(me, self._session)
        self._heart.start()
        if self._listener:
            self._listener.start()
        for dialler in self._diallers:
            dialler.start()

    def _dials(self, name: str, addresses: Mapping[str, str | None]) -> bool:
        """Of two parties that both listen, the later one in the federation dials."""
        return not addresses[self.me] or self.parties.index(self.me) > self.parties.index(name)

    @property
    def port(self) -> int | None:
        """The port on which this party listens, for an address whose port was 0."""
        return self._listener.port if self._listener else None

    def admit(self, name: str, session: bytes) -> None:
        """Refuse a link in the name of a party that has another process here already."""
        with self._changed:
            if name not in self._pairs:
                raise IdentityError(f"{name!r} is not another party of this job")
            known = self._sessions.setdefault(name, session)
            if known != session:
                how = "is connected" if name in self._links else "was connected before"
                raise NameTaken(
                    f"two processes claim the name {name!r}: another one {how} in this job; end "
                    "one of them, and start all parties again if the first is gone"
                )

    def link_up(self, link: Link) -> None:
        """Use a new link, in place of an older one to the same party."""
        with self._changed:
            old = self._links.get(link.peer)
            self._links[link.peer] = link
            self._pairs[link.peer].lost = None
            if old is not None:
                old.close()
            if link.dialled:
                for name in self._pairs:
                    if name == link.peer or (link.peer == self.relay and name not in self._direct):
                        self._greet(name)
        self._announce(link.peer, True)

    def link_down(self, link: Link) -> None:
        """Mark the peers behind a broken link as lost, if it is still the one in use."""
        with self._changed:
            if self._links.get(link.peer) is not link:
                return
            del self._links[link.peer]
            for name in self._pairs:
                if name == link.peer or (link.peer == self.relay and name not in self._direct):
                    self._part(name)
        self._announce(link.peer, False)

    def restarted(self, name: str) -> PeerStopped:
        return PeerStopped(
            f"{self.me}: {name} was started again and has lost its part of the job; start all "
            "parties again"
        )

    def arrived(self, raw: bytes, link: Link) -> None:
        """Take a packet from this link or pass it on; WireError if it makes no sense here."""
        packet = envelope.unpack(raw, len(self.parties))
        sender, receiver = self.parties[packet.sender], self.parties[packet.receiver]
        passed_on = link.peer == self.relay and sender not in self._direct
        if sender != link.peer and not passed_on:
            raise WireError(f"a packet from {sender} over the link of {link.peer}")
        if packet.kind == NOTICE and sender != self.relay:
            # Passed on, it would speak of others in the relay's name.
            raise WireError(f"a notice from {sender}, which is not the relay")
        if receiver != self.me:
            if self.me != self.relay:
                raise WireError(f"a packet for {receiver} at {self.me}, which relays nothing")
            if self._listening & {sender, receiver}:
                # Its receiver takes such a packet from nobody but the sender.
                raise WireError(f"a packet for {receiver}, to which {sender} has an own link")
            with self._changed:
                onward = self._links.get(receiver)
            if onward is not None:
                urgent = packet.kind != envelope.DATA
                onward.outbox.put(raw, urgent=urgent, source=sender, limit=RELAY_CAPACITY)
        elif packet.kind == NOTICE:
            notice = envelope.decode(packet.body, LinkNotice)
            if notice.party in self._pairs and notice.party not in self._direct:
                self._noticed(notice)
        else:
            self._accept(packet)

    def _noticed(self, notice: LinkNotice) -> None:
        with self._changed:
            if notice.up:
                self._pairs[notice.party].lost = None
            elif self._pairs[notice.party].ready:
                self._part(notice.party)

    def _announce(self, party: str, up: bool) -> None:
        """As the relay, tell the other parties that the link of ``party`` stands or broke."""
        if self.me != self.relay:
            return
        body = envelope.encode(LinkNotice(party, up))
        with self._changed:
            for name, link in self._links.items():
                if name != party:
                    place = self.parties.index(name)
                    head = envelope.pack_head(NOTICE, 0, self._place, place, 0)
                    link.outbox.put(head + body, urgent=True)

    def _post(self, peer: str, packet: Ready, *, urgent: bool) -> None:
        link = self._links.get(peer if peer in self._direct else self.relay)
        if link is not None:
            link.outbox.put(packet, urgent=urgent)

    def _owed(self, pair: object, now: float) -> bool:
        """The relay stays until the others have let go of their links."""
        return super()._owed(pair, now) or (  # type: ignore[arg-type]
            self.me == self.relay and bool(self._links) and len(self.parties) > 2
        )

    def _release(self) -> None:
        with self._changed:
            links = list(self._links.values())
        for link in links:
            link.outbox.finish()
        for dialler in self._diallers:
            dialler.stop()
        if self._listener:
            self._listener.stop()
        for link in links:
            link.close()
