"""A client of secure aggregation: its state, and one function per round (see `rounds`).

Every function takes what the server sent, checks it, and returns what goes back. A client that
refuses raises, and sends nothing any more.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError, SecrecyError, ThresholdMissed
from vertikal.secure.keys.prg import add_streams, derive_key
from vertikal.secure.secagg import shamir
from vertikal.secure.secagg.client_keys import ExchangeKey, SigningKey, decrypt, encrypt, is_signed
from vertikal.secure.secagg.coins import (
    COIN_BYTES,
    coin_commitment,
    digest_of_commitments,
    seed_of,
)
from vertikal.secure.secagg.neighbours import Neighbours
from vertikal.secure.secagg.rounds import (
    ADVERTISE,
    CONFIRM,
    MASK,
    OPEN_COINS,
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
    commitment,
)
from vertikal.secure.secagg.shamir import SECRET_BYTES, SHARE_BYTES

Array = npt.NDArray[Any]


@dataclass
class ClientState:
    """All that one client knows of one aggregation."""

    name: str
    terms: Terms
    signing_key: SigningKey
    done: int = 0  # rounds that lie behind
    cipher_key: ExchangeKey = field(
        default_factory=lambda: ExchangeKey(os.urandom(SECRET_BYTES), "seal"), repr=False
    )
    pad_secret: bytes = field(default_factory=lambda: os.urandom(SECRET_BYTES), repr=False)
    self_secret: bytes = field(default_factory=lambda: os.urandom(SECRET_BYTES), repr=False)
    coin: bytes = field(default_factory=lambda: os.urandom(COIN_BYTES), repr=False)
    coins_digest: bytes = b""  # of all commitments to coins
    committee: dict[str, bytes] = field(default_factory=dict)  # commitments of who shows its coin
    graph: Neighbours | None = field(default=None, repr=False)  # once the coins are shown
    roster: dict[str, Advertisement] = field(default_factory=dict)
    pair_keys: dict[str, bytes] = field(default_factory=dict, repr=False)
    held: dict[str, bytes] = field(default_factory=dict, repr=False)  # shares, by whose they are
    survivors: frozenset[str] = frozenset()  # itself and its neighbours; all are in the digest
    digest: bytes = b""


def advertise(state: ClientState) -> Advertisement:
    """Round 1: two public keys and the commitments to self-mask and coin, signed."""
    _enter(state, ADVERTISE)
    keys = state.cipher_key.public, pad_key(state.pad_secret).public
    digests = commitment(state.self_secret), coin_commitment(state.name, state.coin)
    unsigned = Advertisement(state.name, *keys, *digests, b"")
    signature = state.signing_key.sign(*state.terms.signed_parts(unsigned))
    return Advertisement(state.name, *keys, *digests, signature)


def open_coin(state: ClientState, told: CoinCommitments) -> CoinOpening:
    """Coins: show the own one if the commitments of all choose this client, and sign both.

    From here on all coins are fixed: this client shows its own once, for these commitments.
    """
    _enter(state, OPEN_COINS)
    terms, commitments = state.terms, told.commitments
    strangers = commitments.keys() - terms.numbers.keys()
    if strangers or commitments.get(state.name) != coin_commitment(state.name, state.coin):
        raise SecrecyError(
            f"{state.name}: {OPEN_COINS}: the commitments must be those of clients, this one's own "
            f"among them, got {sorted(strangers) or 'another one in its name'}"
        )
    if 2 * len(commitments) <= len(terms.clients) and not terms.plan.complete:
        raise ThresholdMissed(
            f"{state.name}: {OPEN_COINS}: {len(commitments)} of {len(terms.clients)} clients have "
            "advertised, more than half must have; nothing is shown"
        )
    state.coins_digest = digest_of_commitments(terms.job, commitments)
    members = terms.committee(state.coins_digest, commitments)
    state.committee = {name: commitments[name] for name in members}
    if state.name not in state.committee:
        return CoinOpening(b"", b"")
    parts = terms.signed_coin(state.name, state.coins_digest, state.coin)
    return CoinOpening(state.coin, state.signing_key.sign(*parts))


def share(state: ClientState, roster: Roster) -> EncryptedShares:
    """Round 2: check the neighbours' keys, then a share of both secrets for each, encrypted."""
    _enter(state, SHARE)
    terms = state.terms
    check_openings(state.name, terms, state.coins_digest, state.committee, roster.openings)
    coins = {name: opening.coin for name, opening in roster.openings.items()}
    state.graph = terms.graph(seed_of(state.coins_digest, coins))
    neighbours = set(state.graph.of(state.name))
    for said in roster.advertisements:
        check_advertisement(state.name, terms, said)
        if said.client not in neighbours:
            raise SecrecyError(f"{state.name}: {said.client} is no neighbour in this graph")
        if said.client in state.roster:
            raise SecrecyError(f"{state.name}: {said.client} advertised twice")
        state.roster[said.client] = said
    own = {state.cipher_key.public, pad_key(state.pad_secret).public}
    keys = [key for said in state.roster.values() for key in (said.cipher_key, said.pad_key)]
    if len(own | set(keys)) != len(own) + len(keys):
        raise SecrecyError(f"{state.name}: a public key was advertised twice")
    _enough(state, len(state.roster) + 1)
    numbers = terms.numbers
    holders = [numbers[name] for name in (state.name, *state.roster)]
    pads = shamir.split(state.pad_secret, holders, terms.threshold)
    selves = shamir.split(state.self_secret, holders, terms.threshold)
    encrypted = {}
    for name in (state.name, *state.roster):
        pair = _share_bytes(pads[numbers[name]]) + _share_bytes(selves[numbers[name]])
        if name == state.name:
            state.held[name] = pair
            continue
        state.pair_keys[name] = state.cipher_key.with_peer(state.roster[name].cipher_key, terms.job)
        encrypted[name] = encrypt(state.pair_keys[name], state.name, name, pair)
    return EncryptedShares(encrypted)


def mask(state: ClientState, inbox: EncryptedShares, values: Array) -> Array:
    """Round 3: the vector with its self-mask and a pad for each neighbour that shared.

    Neighbours that vanished before get no pad. ``values`` stay as they are.
    """
    _enter(state, MASK)
    terms = state.terms
    if values.dtype != terms.ring.dtype or values.shape != (terms.length,):
        raise InputError.of(
            f"values of {state.name}",
            f"{terms.ring.dtype} ({terms.length},)",
            f"{values.dtype} {values.shape}",
        )
    for name, encrypted in inbox.encrypted.items():
        if name not in state.roster:
            raise SecrecyError(f"{state.name}: shares of {name}, who advertised no keys")
        pair = decrypt(state.pair_keys[name], name, state.name, encrypted)
        if len(pair) != 2 * SHARE_BYTES:
            raise SecrecyError(
                f"{state.name}: the shares of {name} must have {2 * SHARE_BYTES} "
                f"bytes, got {len(pair)}"
            )
        state.held[name] = pair
    _enough(state, len(state.held))
    masked = np.array(values)
    mine = pad_key(state.pad_secret)
    streams = [self_stream(state.self_secret)]
    for name in inbox.encrypted:
        streams.append(pad_stream(mine, state.name, state.roster[name].pad_key, name))
    add_streams(masked, streams)
    return masked


def confirm(state: ClientState, told: Survivors) -> Confirmations:
    """Round 4, the check: tell each neighbour whom the server calls survivors, if that can be."""
    _enter(state, CONFIRM)
    graph = _graph(state)
    survivors = frozenset(told.clients)
    strangers = survivors - set(state.terms.numbers)
    silent = (survivors & set(graph.of(state.name))) - set(state.held)
    if strangers or silent or state.name not in survivors or len(survivors) != len(told.clients):
        raise SecrecyError(
            f"{state.name}: the announced survivors must be different clients that shared keys, "
            f"this one among them, got {sorted(strangers | silent) or sorted(told.clients)}"
        )
    near = survivors & set(state.held)
    _enough(state, len(near))
    if not graph.connected(survivors):
        raise ThresholdMissed(
            f"{state.name}: {CONFIRM}: the {len(survivors)} survivors fall into separate groups, "
            "whose sums would open one by one; run again with more neighbours or fewer drop-outs"
        )
    state.survivors = near
    state.digest = state.terms.survivors_digest(survivors)
    return Confirmations(
        {
            name: confirmation(state.pair_keys[name], state.name, state.digest)
            for name in state.held
            if name in near and name != state.name
        }
    )


def unmask(state: ClientState, told: Confirmations) -> Revealed:
    """Round 4: one share about each client, after enough neighbours confirmed the same survivors.

    Of a survivor the share of its self-mask, of anybody else the share of its pads' key: with both
    the server could take a client's vector out of its masks.
    """
    _enter(state, UNMASK)
    confirmed = 1  # itself
    for name, code in told.codes.items():
        if name not in state.pair_keys or name not in state.survivors:
            raise SecrecyError(f"{state.name}: {name} cannot confirm anything here")
        if not hmac.compare_digest(code, confirmation(state.pair_keys[name], name, state.digest)):
            raise SecrecyError(
                f"{state.name}: {name} did not confirm the survivors that the server announced "
                "here; it may have told clients different things, so nothing is opened"
            )
        confirmed += 1
    _enough(state, confirmed)
    revealed = Revealed({}, {})
    for name, pair in state.held.items():
        if name in state.survivors:
            revealed.self_masks[name] = pair[SHARE_BYTES:]
        else:
            revealed.pad_keys[name] = pair[:SHARE_BYTES]
    state.held.clear()
    return revealed


def check_advertisement(reader: str, terms: Terms, said: Advertisement) -> None:
    """Refuse keys that the client's identity has not signed for this job."""
    known = terms.signing_keys.get(said.client)
    if known is None or said.client not in terms.numbers:
        raise SecrecyError(f"{reader}: {said.client} is not a client of this aggregation")
    if not is_signed(known, said.signature, *terms.signed_parts(said)):
        raise SecrecyError(
            f"{reader}: the keys of {said.client} are not signed by {said.client}; forged or "
            "meant for another job"
        )


def check_openings(
    reader: str,
    terms: Terms,
    digest: bytes,
    committee: Mapping[str, bytes],
    openings: Mapping[str, CoinOpening],
) -> None:
    """Refuse coins that are not those of the whole committee, for the commitments in ``digest``."""
    missing = sorted(set(committee) ^ set(openings))
    if missing:
        raise SecrecyError(
            f"{reader}: {OPEN_COINS}: the {len(committee)} members of the committee must show "
            f"their coins and nobody else, got another answer of {missing[:5]}; begin anew"
        )
    for name, opening in openings.items():
        fits = coin_commitment(name, opening.coin) == committee[name]
        parts = terms.signed_coin(name, digest, opening.coin)
        if not fits or not is_signed(terms.signing_keys[name], opening.signature, *parts):
            raise SecrecyError(
                f"{reader}: {OPEN_COINS}: the coin of {name} is not the one it committed to, or "
                f"{name} was told of other commitments; nothing is shared"
            )


def confirmation(pair_key: bytes, sender: str, digest: bytes) -> bytes:
    """``sender``'s word to the other of a pair that it was told of the survivors in ``digest``."""
    return hmac.digest(derive_key(pair_key, "confirm", sender), digest, "sha256")


def pad_key(secret: bytes) -> ExchangeKey:
    """s: the key whose exchanges give the pads."""
    return ExchangeKey(secret, "pads")


def pad_stream(mine: ExchangeKey, me: str, theirs: bytes, peer: str) -> tuple[bytes, int]:
    """The pad of a pair as (key, sign): the first by name adds, the other takes off."""
    return mine.with_peer(theirs, "pad", *sorted((me, peer))), 1 if me < peer else -1


def self_stream(secret: bytes) -> tuple[bytes, int]:
    """The self-mask PRG(b) as (key, sign)."""
    return derive_key(secret, "self-mask"), 1


def _share_bytes(value: int) -> bytes:
    return value.to_bytes(SHARE_BYTES, "big")


def _graph(state: ClientState) -> Neighbours:
    if state.graph is None:
        raise SecrecyError(f"{state.name}: the coins that draw the neighbours are not known")
    return state.graph


def _enter(state: ClientState, stage: str) -> None:
    """Rounds come once and in order: no question is answered twice."""
    if state.done != STAGES.index(stage):
        expected = STAGES[state.done] if state.done < len(STAGES) else "nothing"
        raise SecrecyError(
            f"{state.name}: {stage!r} is out of order, {expected!r} comes next; a client "
            "answers each round once"
        )
    state.done += 1


def _enough(state: ClientState, count: int) -> None:
    if count < state.terms.threshold:
        raise ThresholdMissed(
            f"{state.name}: {STAGES[state.done - 1]}: {count} of the holders of its secrets are "
            f"there, at least {state.terms.threshold} must be; nothing is opened"
        )
