"""The mesh of one run or one session: packets over the service's standing links.

It promises what every packet mesh does: while the processes live, nothing is lost, repeated or out
of order, pairs that speak through the relay are encrypted from end to end, and every wait has a
deadline. A peer whose process was started again has lost its part of the run; the run ends, and the
leader begins another.
"""

from __future__ import annotations

from vertikal.errors import PeerStopped, WireError
from vertikal.mesh.packets import envelope
from vertikal.mesh.packets.packet_mesh import PacketMesh, Timing
from vertikal.mesh.packets.security import Security
from vertikal.node.links.protocols import protocol_name
from vertikal.node.links.standing_links import StandingLinks, short_name
from vertikal.version import PROTOCOL


class RunMesh(PacketMesh):
    """One party's end of one run; all parties know the run by the same ``name``."""

    def __init__(
        self,
        links: StandingLinks,
        parties: tuple[str, ...],
        security: Security,
        *,
        name: str,
        deadline: float,
        patience: float,
        protocol: int = PROTOCOL,
    ) -> None:
        super().__init__(
            links.me,
            parties,
            deadline,
            security=security,
            encrypted=links.relayed(parties),
            job=name,
            version=protocol_name(protocol),
            timing=Timing(patience=patience),
        )
        self.run = short_name(name)
        self._links = links
        links.attach(self)
        self._heart.start()
        for peer in self.peers:
            if links.is_up(peer):
                self._greet(peer)

    def peer_up(self, name: str) -> None:
        self._greet(name)

    def peer_down(self, name: str) -> None:
        self._part(name)

    def peer_restarted(self, name: str) -> None:
        self.blame(
            name,
            PeerStopped(f"{self.me}: {name} was started again and has lost its part of this run"),
        )

    def peer_removed(self, name: str) -> None:
        self.blame(name, PeerStopped(f"{self.me}: {name} was removed from the federation"))

    def abandon(self, reason: str) -> None:
        """End this party's part: its waits fail with the reason, and the others are told it."""
        for name in self.peers:
            self.blame(name, PeerStopped(f"{self.me}: {reason}"))
        self.fail(reason)

    def parcel(self, sender: str, body: bytes) -> None:
        """Take in a packet of this run from the party that the link names.

        Nonsense ends the run and blames that party. The link stays: it may be the relay's, which
        cannot know the places of a run's parties.
        """
        try:
            packet = envelope.unpack(body, len(self.parties))
            if (self.parties[packet.sender], self.parties[packet.receiver]) != (sender, self.me):
                raise WireError("a packet of another pair")
        except WireError as error:
            self.blame(sender, WireError(f"{self.me}: {sender} sent {error}"))
            return
        self._accept(packet)

    def _post(self, peer: str, packet: envelope.Ready, *, urgent: bool) -> None:
        self._links.post(peer, self.run, envelope.whole(packet), urgent=urgent)

    def _release(self) -> None:
        self._links.detach(self)
