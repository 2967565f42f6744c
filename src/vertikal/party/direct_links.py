"""Links between workers of different parties, for sums of ring elements of rows.

A label party's workers listen, and those of each other party dial them, where both parties offer it
in the agreement on keys. All that they must know of each other comes over the mesh: how many
workers there are, which tells where each row lies, certificates and addresses. The label party
decides once for each peer: from worker to worker if all of its workers reach all of the label
party's, else through the one port, as without workers. Everybody is told.

After each sum the label party says whether it is complete. If a link broke or a worker was lost, it
is not known what has been sent. All links are then made anew, and all parties do that sum and those
after it again, with pads of other keys: no pad covers two different data, whatever a lost worker
had sent. A run that loses its links too often goes on through the one port.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec

from vertikal.compute.place import Place
from vertikal.data.tables import Table
from vertikal.errors import LinkLost, MeshError
from vertikal.mesh.worker_links import WorkerLinks
from vertikal.party.booking import BookedMesh
from vertikal.privacy.ledger import Disclosure
from vertikal.records import convert
from vertikal.secure.keys.link_identity import LinkIdentity

Message = TypeVar("Message", bound=msgspec.Struct)

WORKER_LINKS = Disclosure(
    "worker links",
    "addresses and certificates of workers, and whether all links hold",
    "how many workers the sender has, where they are dialled, and when one was lost; nothing about "
    "the data",
    masked=False,
)

RENEWALS = 4
"""Times that links are made anew in one run."""


class OfferedWorkers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The workers of a party in this pass, none if its rows lie elsewhere; without addresses they
    dial.
    """

    workers: int
    certificate: bytes = b""
    addresses: tuple[str, ...] = ()


class LinksState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Reason why links do not hold; empty if they do."""

    lost: str


class LinkedParties(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parties whose workers send straight to those of the label party."""

    direct: tuple[str, ...]


class DirectLinks:
    """Links of this party's workers in one run, towards each label party and at itself.

    ``offering`` are the parties whose workers may be linked.
    """

    def __init__(
        self,
        mesh: BookedMesh,
        place: Place,
        label_parties: tuple[str, ...],
        offering: frozenset[str],
    ) -> None:
        self._mesh, self._place = mesh, place
        self._label_parties, self._offering = label_parties, offering
        self.direct: Mapping[str, Mapping[str, int]] = {}
        """For each label party the peers that are linked with it. The number is that of the workers
        at the other end of this party's links.
        """
        self.links: dict[str, Any] = {}
        """Links of this party's workers, by label party."""
        self._renewals = 0
        self._unreached: set[str] = set()
        self._said: set[str] = set()

    def open(self, table: Table) -> None:
        """Make the links of a pass over this table, or do without; all parties in step."""
        self.close()
        self._table = table
        allowed = self._renewals <= RENEWALS
        found = {}
        for to in self._label_parties:
            peers = [name for name in self._mesh.parties if name != to and name in self._offering]
            found[to] = self._join(to, peers) if allowed and to in self._offering and peers else {}
        self.direct = found

    def close(self) -> None:
        """End all links."""
        for links in self.links.values():
            links.close()
        self.links = {}

    def agree(self, to: str, lost: str) -> bool:
        """Hear whether a sum at ``to`` is complete; ``lost`` says why this party's part is not."""
        mesh, direct = self._mesh, self.direct[to]
        if not direct:
            return True
        with mesh.under(WORKER_LINKS):
            if mesh.me == to:
                said = [lost, *(self._hear(name, "state", LinksState).lost for name in direct)]
                why = next((one for one in said if one), "")
                for name in mesh.peers:
                    self._tell(name, "sum", LinksState(why))
            else:
                if mesh.me in direct:
                    self._tell(to, "state", LinksState(lost))
                why = self._hear(to, "sum", LinksState).lost
        if why:
            self._renewals += 1
            then = "made anew" if self._renewals <= RENEWALS else "given up"
            self._place.say(f"links between workers are {then}, since {why}")
        return not why

    def _join(self, to: str, peers: list[str]) -> dict[str, int]:
        """Make the links to the workers of one label party; return who has some."""
        mesh = self._mesh
        with mesh.under(WORKER_LINKS):
            if mesh.me == to:
                found = self._listen(peers)
                for name in mesh.peers:
                    self._tell(name, "chosen", LinkedParties(tuple(found)))
                return found
            mine = self._dial(to) if mesh.me in peers else 0
            direct = self._hear(to, "chosen", LinkedParties).direct
        strangers = [name for name in direct if name not in peers]
        if strangers or (mesh.me in direct and not mine):
            raise MeshError(f"{mesh.me}: {to} has links with {list(direct)}, which cannot be")
        # Nobody but the label party needs the others' numbers of workers.
        return {name: mine if name == mesh.me else 0 for name in direct}

    def _listen(self, peers: list[str]) -> dict[str, int]:
        """Let the workers of these peers dial those of this label party."""
        offers = {name: self._hear(name, "offer", OfferedWorkers) for name in peers}
        willing = {name: one for name, one in offers.items() if one.workers > 0}
        mine = OfferedWorkers(0)
        if willing and self._place.linked_workers(self._table):
            mine = self._listening({name: one.certificate for name, one in willing.items()})
        for name in willing:
            self._tell(name, "offer", mine)
        found = {}
        for name, one in willing.items():
            if not mine.workers:
                continue
            lost = self._hear(name, "reached", LinksState).lost
            if lost:
                self._say(f"phases of {name} come through the one port, since {lost}")
            else:
                found[name] = one.workers
        if found:
            self._say(f"phases of {', '.join(found)} come from worker to worker")
        return found

    def _listening(self, certificates: dict[str, bytes]) -> OfferedWorkers:
        me = self._mesh.me
        identity = LinkIdentity.create(me).trusting(certificates)
        self.links[me] = self._made(identity)
        try:
            addresses = tuple(self.links[me].listen())
        except OSError as error:
            self._say(f"workers cannot be dialled, since {error}")
            self.links.pop(me).close()
            return OfferedWorkers(0)
        return OfferedWorkers(len(addresses), identity.certificate, addresses)

    def _dial(self, to: str) -> int:
        """Let this party's workers dial those of a label party; return how many these are."""
        identity = LinkIdentity.create(self._mesh.me)
        # Tried once: whoever cannot be reached is not dialled in every pass.
        mine = 0 if to in self._unreached else self._place.linked_workers(self._table)
        self._tell(to, "offer", OfferedWorkers(mine, identity.certificate if mine else b""))
        theirs = self._hear(to, "offer", OfferedWorkers) if mine else OfferedWorkers(0)
        if not theirs.workers:
            return 0
        links = self._made(identity.trusting({to: theirs.certificate}))
        try:
            links.dial(to, theirs.addresses)
        except LinkLost as error:
            links.close()
            self._unreached.add(to)
            self._say(f"phases for {to} go through the one port, since {error}")
            self._tell(to, "reached", LinksState(str(error)))
            return 0
        self._tell(to, "reached", LinksState(""))
        self.links[to] = links
        self._say(f"phases for {to} go from worker to worker")
        return theirs.workers

    def _made(self, identity: LinkIdentity) -> Any:
        make = partial(WorkerLinks, identity, deadline=self._mesh.deadline)
        return self._place.links(self._table, make)

    def _say(self, words: str) -> None:
        """Tell of links where progress is shown, once in all passes."""
        if words not in self._said:
            self._said.add(words)
            self._place.say(words)

    def _tell(self, to: str, what: str, message: msgspec.Struct) -> None:
        self._mesh.send(to, f"links/{what}", msgspec.structs.asdict(message))

    def _hear(self, from_: str, what: str, kind: type[Message]) -> Message:
        message: Any = self._mesh.recv(from_, f"links/{what}")
        try:
            return convert(message, kind)
        except msgspec.ValidationError as error:
            raise MeshError(
                f"{self._mesh.me}: {from_} spoke of links between workers wrongly: {error}"
            ) from None
