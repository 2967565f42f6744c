"""A server and its clients at one table: rounds by hand, so that a test can break any of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from vertikal.ring.integers import Ring
from vertikal.secure.secagg import client, server
from vertikal.secure.secagg.client_keys import SigningKey
from vertikal.secure.secagg.neighbours import NeighbourPlan, Neighbours, everybody
from vertikal.secure.secagg.rounds import (
    CoinCommitments,
    Confirmations,
    EncryptedShares,
    Revealed,
    Roster,
    Survivors,
    Terms,
)

NAMES = ("ada", "bob", "cyd", "dan", "eve", "fay")


def circle_of(graph: Neighbours) -> list[str]:
    """All clients, each followed by its next neighbour."""
    circle = [graph.clients[0]]
    while len(circle) < len(graph.clients):
        circle.append(graph.of(circle[-1])[graph.plan.degree // 2])
    return circle


@dataclass
class Seats:
    """One aggregation, advanced round by round."""

    terms: Terms
    signing_keys: dict[str, SigningKey]
    centre: server.ServerState
    clients: dict[str, client.ClientState]
    values: dict[str, np.ndarray]

    @classmethod
    def take(
        cls,
        names: Iterable[str] = NAMES,
        length: int = 5,
        bits: int = 16,
        plan: NeighbourPlan | None = None,
    ) -> Seats:
        names = tuple(names)
        signing_keys = {name: SigningKey.fresh() for name in names}
        public = {name: key.public for name, key in signing_keys.items()}
        chosen = plan or everybody(len(names))
        terms = Terms("job", names, chosen, public, Ring(bits), length)
        generator = np.random.default_rng(len(names))
        values = {
            name: generator.integers(0, 2**bits, length, dtype=f"uint{bits}") for name in names
        }
        states = {name: client.ClientState(name, terms, signing_keys[name]) for name in names}
        return cls(terms, signing_keys, server.ServerState(terms), states, values)

    def committed(self, gone: Iterable[str] = ()) -> CoinCommitments:
        there = [name for name in self.clients if name not in set(gone)]
        said = {name: client.advertise(self.clients[name]) for name in there}
        return server.collect_keys(self.centre, said)

    def opened(self, told: CoinCommitments, gone: Iterable[str] = ()) -> dict[str, Roster]:
        there = [name for name in told.commitments if name not in set(gone)]
        said = {name: client.open_coin(self.clients[name], told) for name in there}
        return server.collect_openings(self.centre, said)

    def advertised(self, gone: Iterable[str] = ()) -> dict[str, Roster]:
        """Round 1 and the coins."""
        return self.opened(self.committed(gone))

    def shared(
        self, rosters: dict[str, Roster], gone: Iterable[str] = ()
    ) -> dict[str, EncryptedShares]:
        there = [name for name in rosters if name not in set(gone)]
        encrypted = {name: client.share(self.clients[name], rosters[name]) for name in there}
        return server.deliver_shares(self.centre, encrypted)

    def masked(self, inboxes: dict[str, EncryptedShares], gone: Iterable[str] = ()) -> Survivors:
        for name, inbox in inboxes.items():
            if name not in set(gone):
                vector = client.mask(self.clients[name], inbox, self.values[name])
                server.add_masked(self.centre, name, vector)
        return server.survivors(self.centre)

    def confirmed(self, told: Survivors, gone: Iterable[str] = ()) -> dict[str, Confirmations]:
        there = [name for name in told.clients if name not in set(gone)]
        said = {name: client.confirm(self.clients[name], told) for name in there}
        return server.collect_confirmations(self.centre, said)

    def revealed(
        self, codes: dict[str, Confirmations], gone: Iterable[str] = ()
    ) -> dict[str, Revealed]:
        there = [name for name in codes if name not in set(gone)]
        return {name: client.unmask(self.clients[name], codes[name]) for name in there}

    def up_to_survivors(self, gone: Iterable[str] = ()) -> Survivors:
        """Rounds 1 to 3, with drop-outs after the shares."""
        return self.masked(self.shared(self.advertised()), gone)

    def up_to_answers(self, gone: Iterable[str] = ()) -> dict[str, Revealed]:
        """Everything but the opening."""
        return self.revealed(self.confirmed(self.up_to_survivors(gone)))
