"""The server of secure aggregation: its state, and one function per round (see `rounds`).

It passes on what clients encrypt for one another, adds up masked vectors as they come, and takes
the masks off the sum with the shares of those who are still there. It keeps no single vector.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import SecrecyError, ThresholdMissed
from vertikal.secure.keys.prg import add_streams
from vertikal.secure.secagg import shamir
from vertikal.secure.secagg.client import (
    check_advertisement,
    check_openings,
    pad_key,
    pad_stream,
    self_stream,
)
from vertikal.secure.secagg.coins import digest_of_commitments, seed_of
from vertikal.secure.secagg.neighbours import Neighbours
from vertikal.secure.secagg.rounds import (
    ADVERTISE,
    CONFIRM,
    MASK,
    OPEN_COINS,
    SERVER,
    SHARE,
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
    commitment,
)

Array = npt.NDArray[Any]


@dataclass
class ServerState:
    """All that the server knows of one aggregation."""

    terms: Terms
    advertised: dict[str, Advertisement] = field(default_factory=dict)
    coins_digest: bytes = b""  # of all commitments to coins
    committee: dict[str, bytes] = field(default_factory=dict)  # commitments of who shows its coin
    graph: Neighbours | None = field(default=None, repr=False)  # once the coins are shown
    shared: dict[str, EncryptedShares] = field(default_factory=dict, repr=False)
    total: Array | None = field(default=None, repr=False)
    delivered: set[str] = field(default_factory=set)
    closed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)


def collect_keys(state: ServerState, said: Mapping[str, Advertisement]) -> CoinCommitments:
    """Round 1: check all keys, and tell everybody the commitments to coins."""
    for client, advertisement in said.items():
        if advertisement.client != client:
            raise SecrecyError(f"{SERVER}: {client} advertised keys as {advertisement.client}")
        check_advertisement(SERVER, state.terms, advertisement)
    keys = [key for a in said.values() for key in (a.cipher_key, a.pad_key, a.commitment)]
    if len(set(keys)) != len(keys):
        repeated = sorted(
            a.client
            for a in said.values()
            if any(keys.count(key) > 1 for key in (a.cipher_key, a.pad_key, a.commitment))
        )
        raise SecrecyError(f"{SERVER}: a key was advertised twice, by {repeated}")
    _enough(state, ADVERTISE, len(said))
    state.advertised.update(said)
    commitments = {client: a.coin_commitment for client, a in said.items()}
    state.coins_digest = digest_of_commitments(state.terms.job, commitments)
    members = state.terms.committee(state.coins_digest, commitments)
    state.committee = {name: commitments[name] for name in members}
    return CoinCommitments(commitments)


def withheld(state: ServerState, openings: Mapping[str, CoinOpening]) -> list[str]:
    """List who of the committee has not shown its coin: the job has to begin anew without them."""
    return sorted(set(state.committee) - set(openings))


def collect_openings(state: ServerState, openings: Mapping[str, CoinOpening]) -> dict[str, Roster]:
    """Coins: check those of the committee, and tell each client these and its neighbours' keys."""
    _enough(state, OPEN_COINS, len(openings))
    shown = {name: openings[name] for name in state.committee if name in openings}
    check_openings(SERVER, state.terms, state.coins_digest, state.committee, shown)
    coins = {name: opening.coin for name, opening in shown.items()}
    graph = state.graph = state.terms.graph(seed_of(state.coins_digest, coins))
    said = state.advertised
    return {
        client: Roster([said[peer] for peer in graph.of(client) if peer in said], shown)
        for client in openings
    }


def deliver_shares(
    state: ServerState, encrypted: Mapping[str, EncryptedShares]
) -> dict[str, EncryptedShares]:
    """Round 2: hand each client what its neighbours encrypted for it."""
    graph = _graph(state)
    for client, shares in encrypted.items():
        wanted = {p for p in graph.of(client) if p in state.advertised}
        if client not in state.advertised or set(shares.encrypted) != wanted:
            raise SecrecyError(
                f"{SERVER}: {client} must encrypt one share for each of its {len(wanted)} "
                f"neighbours, got {len(shares.encrypted)}"
            )
    _enough(state, SHARE, len(encrypted))
    state.shared.update(encrypted)
    return {
        client: EncryptedShares(
            {p: encrypted[p].encrypted[client] for p in graph.of(client) if p in encrypted}
        )
        for client in encrypted
    }


def add_masked(state: ServerState, client: str, masked: Array) -> None:
    """Round 3: add a masked vector to the sum; may be called from several threads."""
    with state.lock:
        if client not in state.shared or client in state.delivered or state.closed:
            raise SecrecyError(
                f"{SERVER}: {client} may send one masked vector, after sharing its keys and before "
                "the survivors are announced"
            )
        if state.total is None:
            state.total = np.zeros(state.terms.length, state.terms.ring.dtype)
        np.add(state.total, masked, out=state.total)
        state.delivered.add(client)


def survivors(state: ServerState) -> Survivors:
    """Round 4: whose vectors are in the sum; no further one is taken."""
    state.closed = True
    _enough(state, MASK, len(state.delivered))
    if not _graph(state).connected(state.delivered):
        raise ThresholdMissed(
            f"{SERVER}: {MASK}: the {len(state.delivered)} survivors fall into separate "
            "groups; run again with more neighbours or fewer drop-outs"
        )
    return Survivors(sorted(state.delivered))


def collect_confirmations(
    state: ServerState, said: Mapping[str, Confirmations]
) -> dict[str, Confirmations]:
    """Round 4: pass on to each client its neighbours' codes."""
    _enough(state, CONFIRM, len(said))
    graph = _graph(state)
    return {
        client: Confirmations(
            {p: said[p].codes[client] for p in graph.of(client) if client in _codes(said, p)}
        )
        for client in said
    }


def _codes(said: Mapping[str, Confirmations], client: str) -> Mapping[str, bytes]:
    return said[client].codes if client in said else {}


def unmask(state: ServerState, revealed: Mapping[str, Revealed]) -> Array:
    """Round 4: take off the survivors' self-masks, and the pads of those who left after sharing."""
    _enough(state, UNMASK, len(revealed))
    check_answers(state, revealed)
    terms, graph = state.terms, _graph(state)
    masks = {name: answer.self_masks for name, answer in revealed.items()}
    pads = {name: answer.pad_keys for name, answer in revealed.items()}
    streams: list[tuple[bytes, int]] = []
    for client in sorted(state.delivered):
        shares = _shares_of(state, client, masks)
        fixed = state.advertised[client].commitment
        secret = _open(state, client, "self-mask", shares, commitment, fixed)
        key, sign = self_stream(secret)
        streams.append((key, -sign))
    for client in sorted(set(state.shared) - state.delivered):
        neighbours = [p for p in graph.of(client) if p in state.delivered]
        shares = _shares_of(state, client, pads)
        fixed = state.advertised[client].pad_key
        secret = _open(state, client, "pads' key", shares, lambda s: pad_key(s).public, fixed)
        key_pair = pad_key(secret)
        # Its neighbours' pads with the missing client are left over: add its side of them.
        for peer in neighbours:
            streams.append(pad_stream(key_pair, client, state.advertised[peer].pad_key, peer))
    total = state.total
    if total is None or len(total) != terms.length:
        raise SecrecyError(f"{SERVER}: no masked vector has come")
    add_streams(total, streams)
    state.total = None
    return total


def check_answers(state: ServerState, revealed: Mapping[str, Revealed]) -> None:
    """Refuse answers that carry the wrong kind of share about a client, or both kinds."""
    gone = set(state.shared) - state.delivered
    for client, answer in revealed.items():
        if set(answer.self_masks) - state.delivered or set(answer.pad_keys) - gone:
            raise SecrecyError(
                f"{SERVER}: {client} must give self-mask shares of survivors and pad shares of "
                "the others only; its answer is not used"
            )


def _shares_of(
    state: ServerState, client: str, given: Mapping[str, Mapping[str, bytes]]
) -> dict[str, bytes]:
    """Collect the shares of this client's secret from its holders; nobody else can know one."""
    holders = (client, *_graph(state).of(client))
    return {p: given[p][client] for p in holders if client in given.get(p, {})}


def _open(
    state: ServerState,
    client: str,
    what: str,
    shares: Mapping[str, bytes],
    public: Callable[[bytes], bytes],
    fixed: bytes,
) -> bytes:
    """Join the shares to the secret whose ``public`` form is ``fixed``.

    One of the holders may have given a wrong share, where there is one more than needed.
    """
    if len(shares) < state.terms.threshold:
        raise ThresholdMissed(
            f"{SERVER}: {UNMASK}: {len(shares)} shares of the {what} of {client} came, at least "
            f"{state.terms.threshold} are needed; nothing is opened"
        )
    numbers = state.terms.numbers
    points = {numbers[p]: int.from_bytes(value, "big") for p, value in sorted(shares.items())}
    # All of them first. If these do not fit, each holder in turn may be the one that lies.
    for liar in (None, *list(points)[: state.terms.threshold]):
        believed = {x: y for x, y in points.items() if x != liar}
        if len(believed) >= state.terms.threshold:
            with suppress(SecrecyError):
                secret = shamir.join(believed, state.terms.threshold)
                if public(secret) == fixed:
                    return secret
    raise SecrecyError(
        f"{SERVER}: {UNMASK}: the shares of the {what} of {client} do not fit; some of "
        f"{sorted(shares)} gave wrong ones, and nothing is opened"
    )


def _graph(state: ServerState) -> Neighbours:
    if state.graph is None:
        raise SecrecyError(f"{SERVER}: the coins that draw the neighbours are not known")
    return state.graph


def _enough(state: ServerState, stage: str, count: int) -> None:
    """With fewer clients than a secret has holders no round can end well."""
    if count < state.terms.threshold:
        raise ThresholdMissed(
            f"{SERVER}: {stage}: {count} of {len(state.terms.clients)} clients are there, at "
            f"least {state.terms.threshold} must be; nothing is opened"
        )
