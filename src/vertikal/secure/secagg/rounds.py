"""Secure aggregation with drop-outs: its rounds and their messages.

The protocol of Bonawitz et al. (2016, 2017), on the graph of Bell et al. (2020). One server adds up
vectors of ring elements of many clients, and learns the sum of those that stayed to the end of
round 3, whatever the others did:

    1  advertise keys   a client signs two public keys, and commitments to a secret and to a coin
       open coins       a committee shows its coins, which decide who is whose neighbour (`coins`)
    2  share keys       it shares its secrets among its neighbours (Shamir), encrypted for each
    3  masked input     it sends its vector + self-mask ± one pad per neighbour that shared
    4  unmask           the survivors of round 3 are announced; neighbours confirm to one another,
                        under the keys of round 2, that they were told the same; then each gives
                        its share of the self-mask of every survivor, and of the pads' key of
                        everybody else

A secret opens with ``threshold`` shares. A client gives one kind of share about each other client,
once: of the self-mask if that client survived, of the pads if it did not, never both. Every message
passes through the server as a frame of `mesh.wire`; nothing in it but encrypted shares is secret.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.errors import SecrecyError, WireError
from vertikal.mesh import wire
from vertikal.records import convert
from vertikal.ring.integers import Ring
from vertikal.secure.keys.prg import encode_texts
from vertikal.secure.secagg.coins import choose_committee
from vertikal.secure.secagg.neighbours import NeighbourPlan, Neighbours

Array = npt.NDArray[Any]

SERVER = "server"

STAGES = (
    "advertise keys",
    "open coins",
    "share keys",
    "masked input",
    "confirm survivors",
    "unmask",
)
"""The rounds in order; the fourth of the paper is two messages here, the check and the answer."""
ADVERTISE, OPEN_COINS, SHARE, MASK, CONFIRM, UNMASK = STAGES


class Advertisement(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"cipher_key": "seal_key"}
):
    """Round 1, client to server: c^PK, s^PK and digests of b and of a coin, signed."""

    client: str
    cipher_key: bytes
    pad_key: bytes
    commitment: bytes
    coin_commitment: bytes
    signature: bytes


class CoinCommitments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Coins, server to client: the digests of all coins, by client."""

    commitments: dict[str, bytes]


class CoinOpening(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Coins, client to server: its coin, signed; both are empty outside the committee."""

    coin: bytes
    signature: bytes


class Roster(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Round 1, server to client: what its neighbours advertised, and the committee's coins."""

    advertisements: list[Advertisement]
    openings: dict[str, CoinOpening]


class EncryptedShares(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"encrypted": "sealed"}
):
    """Round 2: encrypted shares, by receiver on the way up, by sender on the way back."""

    encrypted: dict[str, bytes]


class Survivors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Round 4, server to client: whose masked vectors are in the sum."""

    clients: list[str]


class Confirmations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Round 4: codes over the survivors, by receiver on the way up, by sender on the way back."""

    codes: dict[str, bytes]


class Revealed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Round 4, client to server: shares of survivors' self-masks, and of the others' pad keys."""

    self_masks: dict[str, bytes]
    pad_keys: dict[str, bytes]


Message = TypeVar("Message", bound=msgspec.Struct)


@dataclass(frozen=True)
class Terms:
    """The terms on which server and clients agree before anything is sent."""

    job: str
    clients: tuple[str, ...]
    plan: NeighbourPlan
    signing_keys: Mapping[str, bytes]  # Ed25519 public keys by client
    ring: Ring
    length: int  # ring elements of a vector

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The numbers of clients at which polynomials are evaluated."""
        return {name: number for number, name in enumerate(self.clients, 1)}

    @property
    def threshold(self) -> int:
        return self.plan.threshold

    def committee(self, digest: bytes, commitments: Mapping[str, bytes]) -> tuple[str, ...]:
        """Choose who shows its coin; nobody where all pairs are neighbours anyway."""
        return () if self.plan.complete else choose_committee(digest, commitments)

    def graph(self, seed: bytes) -> Neighbours:
        return _graph(seed, self.clients, self.plan)

    def signed_parts(self, said: Advertisement) -> tuple[bytes, ...]:
        """The parts of an advertisement that its signature covers."""
        head = encode_texts("advertise keys", self.job, said.client)
        return head, said.cipher_key, said.pad_key, said.commitment, said.coin_commitment

    def signed_coin(self, client: str, digest: bytes, coin: bytes) -> tuple[bytes, ...]:
        """The parts that the signature of an opening covers."""
        return encode_texts("open coin", self.job, client), digest, coin

    def survivors_digest(self, clients: Iterable[str]) -> bytes:
        """Digest of the survivors, which the code of a confirmation covers."""
        words = encode_texts("survivors", self.job) + msgspec.msgpack.encode(sorted(clients))
        return hashlib.sha256(words).digest()


@lru_cache(maxsize=4)
def _graph(seed: bytes, clients: tuple[str, ...], plan: NeighbourPlan) -> Neighbours:
    """Draw the graph once for all clients of a process."""
    return Neighbours(seed, clients, plan)


def commitment(self_secret: bytes) -> bytes:
    """Digest that fixes a client's self-mask without showing it: the secret has 248 bits."""
    return hashlib.sha256(encode_texts("self-mask") + self_secret).digest()


def encode(sender: str, receiver: str, stage: str, payload: msgspec.Struct | Array) -> bytes:
    """Encode a message as the bytes that travel."""
    if isinstance(payload, np.ndarray):
        frame = wire.frame(sender, receiver, stage, payload)
    else:
        record = msgspec.to_builtins(payload, builtin_types=(bytes,))
        frame = wire.frame(sender, receiver, stage, record)
    head, body = frame.buffers()
    return head + body


def decode(raw: bytes, sender: str, receiver: str, stage: str, kind: type[Message]) -> Message:
    """Decode a message; refuse another sender, receiver, stage or form."""
    payload = _payload(raw, sender, receiver, stage)
    try:
        return convert(payload, kind)
    except msgspec.ValidationError as error:
        raise WireError(f"{receiver}: {stage}: {sender} sent a wrong message: {error}") from None


def decode_vector(raw: bytes, sender: str, terms: Terms) -> Array:
    """Decode a masked vector; refuse another length or ring than agreed."""
    payload = _payload(raw, sender, SERVER, MASK)
    wanted = (terms.ring.dtype, (terms.length,))
    if not isinstance(payload, np.ndarray) or (payload.dtype, payload.shape) != wanted:
        came = f"{payload.dtype} {payload.shape}" if isinstance(payload, np.ndarray) else "a record"
        raise WireError(
            f"{SERVER}: {MASK}: {sender} must send {terms.ring.dtype} ({terms.length},), "
            f"got {came}; nothing is opened"
        )
    return payload


def _payload(raw: bytes, sender: str, receiver: str, stage: str) -> Array | dict[str, Any]:
    stream = io.BytesIO(raw)

    def exactly(count: int) -> bytes:
        part = stream.read(count)
        if len(part) != count:
            raise WireError(f"{receiver}: {stage}: the message of {sender} is cut short")
        return part

    frame = wire.read(exactly)
    if stream.read(1):
        raise WireError(f"{receiver}: {stage}: the message of {sender} is too long")
    header = frame.header
    if (header.sender, header.receiver, header.tag) != (sender, receiver, stage):
        raise SecrecyError(
            f"{receiver}: {stage}: expected a message of {sender}, got {header.tag!r} from "
            f"{header.sender} to {header.receiver}"
        )
    return frame.payload()
