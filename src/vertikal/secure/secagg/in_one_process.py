"""A whole aggregation in one process: real clients, a real server, and every message as bytes.

For simulation and tests. Clients are asked one after another, in round 3 side by side. The caller
says which clients vanish, and at which stage.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from vertikal.errors import InputError
from vertikal.ring.integers import Ring
from vertikal.secure.secagg import client, server
from vertikal.secure.secagg.client_keys import SigningKey
from vertikal.secure.secagg.neighbours import NeighbourPlan, everybody
from vertikal.secure.secagg.rounds import (
    ADVERTISE,
    CONFIRM,
    MASK,
    OPEN_COINS,
    SERVER,
    SHARE,
    STAGES,
    UNMASK,
    Advertisement,
    CoinCommitments,
    CoinOpening,
    Confirmations,
    EncryptedShares,
    Revealed,
    Roster,
    Survivors,
    Terms,
    decode,
    decode_vector,
    encode,
)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Aggregate:
    """Result at the server: the sum over ``survivors``, and the bytes that travelled, by stage."""

    total: Array  # (length,) ring elements
    survivors: tuple[str, ...]
    bytes_sent: Mapping[str, int]  # by the clients, per stage
    bytes_received: Mapping[str, int]  # by the clients, per stage


@dataclass
class Post:
    """Carries messages as bytes and counts them; ``tape`` keeps them if it is a list."""

    tape: list[tuple[str, str, str, bytes]] | None = None
    sent: dict[str, int] = field(default_factory=dict)
    received: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def carry(self, sender: str, receiver: str, stage: str, raw: bytes) -> bytes:
        book = self.received if sender == SERVER else self.sent
        with self._lock:
            book[stage] = book.get(stage, 0) + len(raw)
        if self.tape is not None:
            self.tape.append((sender, receiver, stage, raw))
        return raw


def aggregate(
    clients: Sequence[str],
    values: Callable[[str], Array],
    *,
    ring: Ring,
    length: int,
    plan: NeighbourPlan | None = None,
    drops: Mapping[str, str] | None = None,
    signing_keys: Mapping[str, SigningKey] | None = None,
    tape: list[tuple[str, str, str, bytes]] | None = None,
    threads: int | None = None,
) -> Aggregate:
    """Sum ``values(client)`` over the clients; ``drops`` names the stage before which one vanishes.

    ``plan`` is everybody with everybody unless given; ``signing_keys`` are fresh unless given.
    """
    drops = dict(drops or {})
    wrong = [who for who, stage in drops.items() if stage not in STAGES or who not in clients]
    if wrong:
        raise InputError.of("drops", f"clients and one of {list(STAGES)}", wrong)
    chosen = plan or everybody(len(clients))
    known = signing_keys or {name: SigningKey.fresh() for name in clients}
    public = {name: key.public for name, key in known.items()}
    post = Post(tape)

    def present(names: Sequence[str], stage: str) -> list[str]:
        order = STAGES.index(stage)
        return [n for n in names if n not in drops or STAGES.index(drops[n]) > order]

    def up(name: str, stage: str, payload: Any) -> bytes:
        return post.carry(name, SERVER, stage, encode(name, SERVER, stage, payload))

    def down(name: str, stage: str, payload: Any, kind: type[Any]) -> Any:
        raw = post.carry(SERVER, name, stage, encode(SERVER, name, stage, payload))
        return decode(raw, SERVER, name, stage, kind)

    def asked(names: Sequence[str], stage: str, kind: type[Any], act: Callable[[str], Any]) -> Any:
        return {
            name: decode(up(name, stage, act(name)), name, SERVER, stage, kind) for name in names
        }

    def begin(names: Sequence[str]) -> tuple[server.ServerState, Any, dict[str, CoinOpening]]:
        """Advertise keys and open coins, under a name of its own."""
        terms = Terms(os.urandom(8).hex(), tuple(clients), chosen, public, ring, length)
        centre = server.ServerState(terms)
        states = {name: client.ClientState(name, terms, known[name]) for name in names}
        keys = asked(names, ADVERTISE, Advertisement, lambda n: client.advertise(states[n]))
        fixed = server.collect_keys(centre, keys)
        openings = asked(
            present(names, OPEN_COINS),
            OPEN_COINS,
            CoinOpening,
            lambda n: client.open_coin(states[n], down(n, OPEN_COINS, fixed, CoinCommitments)),
        )
        return centre, states, openings

    there = present(clients, ADVERTISE)
    centre, states, openings = begin(there)
    there = present(there, OPEN_COINS)
    if server.withheld(centre, openings):
        # One of the committee has vanished: the others begin anew, with fresh coins.
        centre, states, openings = begin(there)
    terms = centre.terms
    rosters = server.collect_openings(centre, openings)

    there = present(there, SHARE)
    shares = asked(
        there,
        SHARE,
        EncryptedShares,
        lambda n: client.share(states[n], down(n, SHARE, rosters[n], Roster)),
    )
    inboxes = server.deliver_shares(centre, shares)

    there = present(there, MASK)

    def masked_input(name: str) -> None:
        inbox = down(name, MASK, inboxes[name], EncryptedShares)
        raw = up(name, MASK, client.mask(states[name], inbox, values(name)))
        server.add_masked(centre, name, decode_vector(raw, name, terms))

    with ThreadPoolExecutor(threads or min(8, os.cpu_count() or 1)) as pool:
        for _ in pool.map(masked_input, there):
            pass
    told = server.survivors(centre)

    there = present(there, CONFIRM)
    confirmed = asked(
        there,
        CONFIRM,
        Confirmations,
        lambda n: client.confirm(states[n], down(n, CONFIRM, told, Survivors)),
    )
    confirmations = server.collect_confirmations(centre, confirmed)

    there = present(there, UNMASK)
    revealed = asked(
        there,
        UNMASK,
        Revealed,
        lambda n: client.unmask(states[n], down(n, UNMASK, confirmations[n], Confirmations)),
    )
    total = server.unmask(centre, revealed)
    return Aggregate(total, tuple(told.clients), post.sent, post.received)
