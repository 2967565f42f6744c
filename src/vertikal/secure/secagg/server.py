"""The server of secure aggregation: its state, and one function per round (see `rounds`).

It passes on what clients encrypt for one another, adds up masked vectors as they come, and takes
the masks off the sum with the shares of those who are still there. It keeps no single vector.

A function that takes the messages of all clients at once is made of one for a single message and
one for a single answer, and the state holds the letters of pairs through `Letters` only. So a
server of many clients can take messages as they come, and hold next to nothing of them in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
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
from vertikal.secure.secagg.letters import Letters, LettersInMemory
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

TAG_BYTES = 16
CODE_BYTES = 32
LETTER_BYTES = {
    SHARE: 2 * shamir.SHARE_BYTES + TAG_BYTES,
    CONFIRM: CODE_BYTES,
    UNMASK: shamir.SHARE_BYTES,
}
"""Bytes of a letter between neighbours, by stage."""
STREAMS = 512
"""Masks that are taken off the sum at a time; each has an open cipher."""


@dataclass
class ServerState:
    """All that the server knows of one aggregation."""

    terms: Terms
    advertised: dict[str, Advertisement] = field(default_factory=dict)
    coins_digest: bytes = b""  # of all commitments to coins
    committee: dict[str, bytes] = field(default_factory=dict)  # commitments of who shows its coin
    openings: dict[str, CoinOpening] = field(default_factory=dict)  # coins of the committee
    graph: Neighbours | None = field(default=None, repr=False)  # once the coins are shown
    make_letters: Callable[[Neighbours, int], Letters] = LettersInMemory
    letters: dict[str, Letters] = field(default_factory=dict, repr=False)  # by stage
    shared: set[str] = field(default_factory=set)
    total: Array | None = field(default=None, repr=False)
    delivered: set[str] = field(default_factory=set)
    closed: bool = False
    confirmed: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
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
    draw_graph(state, openings)
    return {client: roster(state, client) for client in openings}


def draw_graph(state: ServerState, openings: Mapping[str, CoinOpening]) -> None:
    """Coins: check those of the committee, and draw the neighbours by them."""
    _enough(state, OPEN_COINS, len(openings))
    shown = {name: openings[name] for name in state.committee if name in openings}
    check_openings(SERVER, state.terms, state.coins_digest, state.committee, shown)
    coins = {name: opening.coin for name, opening in shown.items()}
    state.graph = state.terms.graph(seed_of(state.coins_digest, coins))
    state.openings = shown


def roster(state: ServerState, client: str) -> Roster:
    """Coins: tell a client the committee's coins and its neighbours' keys."""
    said = state.advertised
    near = [said[peer] for peer in _graph(state).of(client) if peer in said]
    return Roster(near, state.openings)


def deliver_shares(
    state: ServerState, encrypted: Mapping[str, EncryptedShares]
) -> dict[str, EncryptedShares]:
    """Round 2: hand each client what its neighbours encrypted for it."""
    for client, shares in encrypted.items():
        check_shares(state, client, shares)
    for client, shares in encrypted.items():
        take_shares(state, client, shares)
    end_sharing(state)
    return {client: inbox(state, client) for client in encrypted}


def check_shares(state: ServerState, client: str, shares: EncryptedShares) -> None:
    """Round 2: refuse anything but one share for each neighbour."""
    wanted = {p for p in _graph(state).of(client) if p in state.advertised}
    if client not in state.advertised or set(shares.encrypted) != wanted:
        raise SecrecyError(
            f"{SERVER}: {client} must encrypt one share for each of its {len(wanted)} "
            f"neighbours, got {len(shares.encrypted)}"
        )


def take_shares(state: ServerState, client: str, shares: EncryptedShares) -> None:
    """Round 2: keep what a client encrypted for its neighbours."""
    check_shares(state, client, shares)
    _letters(state, SHARE).put(client, shares.encrypted)
    state.shared.add(client)


def end_sharing(state: ServerState) -> None:
    """Round 2: no more shares come; refuse to go on with too few clients."""
    _graph(state)
    _enough(state, SHARE, len(state.shared))


def inbox(state: ServerState, client: str) -> EncryptedShares:
    """Round 2: hand a client what its neighbours encrypted for it."""
    return EncryptedShares(_letters(state, SHARE).to(client))


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
    for client, codes in said.items():
        take_codes(state, client, codes)
    end_confirming(state)
    return {client: codes_for(state, client) for client in said}


def take_codes(state: ServerState, client: str, said: Confirmations) -> None:
    """Round 4: keep a client's codes for its neighbours."""
    _letters(state, CONFIRM).put(client, said.codes)
    state.confirmed.add(client)


def end_confirming(state: ServerState) -> None:
    """Round 4: no more codes come; refuse to go on with too few clients."""
    _enough(state, CONFIRM, len(state.confirmed))


def codes_for(state: ServerState, client: str) -> Confirmations:
    """Round 4: pass on to a client its neighbours' codes."""
    return Confirmations(_letters(state, CONFIRM).to(client))


def unmask(state: ServerState, revealed: Mapping[str, Revealed]) -> Array:
    """Round 4: take off the survivors' self-masks, and the pads of those who left after sharing."""
    state.letters.pop(UNMASK, None)
    state.answered.clear()
    for client, answer in revealed.items():
        take_answer(state, client, answer)
    return open_total(state)


def take_answer(state: ServerState, client: str, answer: Revealed) -> None:
    """Round 4: keep the shares that a client gives, each for the client whose secret it is of."""
    check_answers(state, {client: answer})
    _letters(state, UNMASK).put(client, {**answer.self_masks, **answer.pad_keys})
    state.answered.add(client)


def open_total(state: ServerState) -> Array:
    """Round 4: open the sum with the shares that came.

    All secrets are opened before the first mask is taken off.
    """
    _enough(state, UNMASK, len(state.answered))
    self_secrets, pad_secrets = {}, {}
    for client in sorted(state.delivered):
        fixed = state.advertised[client].commitment
        self_secrets[client] = _open(state, client, "self-mask", commitment, fixed)
    for client in sorted(state.shared - state.delivered):
        fixed = state.advertised[client].pad_key
        pad_secrets[client] = _open(state, client, "pads' key", _public_pad_key, fixed)
    total = state.total
    if total is None or len(total) != state.terms.length:
        raise SecrecyError(f"{SERVER}: no masked vector has come")
    streams = _masks_left(state, self_secrets, pad_secrets)
    while batch := list(islice(streams, STREAMS)):
        add_streams(total, batch)
    state.total = None
    return total


def _masks_left(
    state: ServerState, self_secrets: Mapping[str, bytes], pad_secrets: Mapping[str, bytes]
) -> Iterator[tuple[bytes, int]]:
    """Yield key and sign of each stream that is to be added to the sum of masked vectors."""
    for secret in self_secrets.values():
        key, sign = self_stream(secret)
        yield key, -sign
    for client, secret in pad_secrets.items():
        key_pair = pad_key(secret)
        # Its neighbours' pads with the missing client are left over: add its side of them.
        for peer in _graph(state).of(client):
            if peer in state.delivered:
                yield pad_stream(key_pair, client, state.advertised[peer].pad_key, peer)


def _public_pad_key(secret: bytes) -> bytes:
    return pad_key(secret).public


def check_answers(state: ServerState, revealed: Mapping[str, Revealed]) -> None:
    """Refuse answers that carry the wrong kind of share about a client, or both kinds."""
    gone = set(state.shared) - state.delivered
    for client, answer in revealed.items():
        if set(answer.self_masks) - state.delivered or set(answer.pad_keys) - gone:
            raise SecrecyError(
                f"{SERVER}: {client} must give self-mask shares of survivors and pad shares of "
                "the others only; its answer is not used"
            )


def _open(
    state: ServerState, client: str, what: str, public: Callable[[bytes], bytes], fixed: bytes
) -> bytes:
    """Join the shares of a client's secret, whose ``public`` form is ``fixed``.

    One of the holders may have given a wrong share, where there is one more than needed.
    """
    shares = _letters(state, UNMASK).to(client)
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


def _letters(state: ServerState, stage: str) -> Letters:
    """Return the letters of a stage between the neighbours of this aggregation."""
    if stage not in state.letters:
        state.letters[stage] = state.make_letters(_graph(state), LETTER_BYTES[stage])
    return state.letters[stage]


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
