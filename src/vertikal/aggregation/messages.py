"""Messages between an aggregation server and its clients, with a bound for everything in them.

The server asks and a client answers, once for each question. `Up` goes to the server, `Down` to a
client. The payloads of a round are those of `secure.secagg.rounds`. A masked vector travels as its
bare bytes, whose number both sides know beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, cast

import msgspec

from vertikal.aggregation.enrolment import Name, Signature, Ticket
from vertikal.aggregation.task import Task, Tile
from vertikal.errors import WireError
from vertikal.mesh.wire import MAX_RECORD
from vertikal.records import msgpack_reader
from vertikal.secure.secagg.rounds import (
    Advertisement,
    CoinOpening,
    Confirmations,
    EncryptedShares,
    Revealed,
    Roster,
)

PROTOCOL = 1
MOST_CLIENTS = 10_000
"""Clients of one round: their names and coins have to fit into one message."""
MOST_NAMES = 4096
"""Items that the server names in one message."""
MOST_ROWS = 256
"""Rows of the kernel that one request may name."""
NONCE_BYTES = 32
SMALL = 1 << 12
"""Bytes of an answer that has a fixed form."""

Text = Annotated[str, msgspec.Meta(max_length=500)]
Reference = Annotated[str, msgspec.Meta(min_length=32, max_length=32)]
Clients = Annotated[list[Name], msgspec.Meta(max_length=MOST_CLIENTS)]


class Challenge(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down, first of all: who serves, and a number that the client has to sign."""

    protocol: int
    aggregation: Name
    nonce: Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]


class ClientHello(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Up: the ticket, and the signature over the nonce."""

    ticket: Ticket
    signature: Signature


class Welcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down: what is summed here."""

    task: Task


class Ready(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Up: this client takes part in the next round."""


class RoundPending(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down, now and then: a round has not begun yet, and why."""

    clients: int
    reason: Text


class RoundOffer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down: a round begins; answered by the client's keys."""

    round: Reference
    tile: Tile
    clients: Clients
    degree: int
    threshold: int


class ClientKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Up: round 1."""

    said: Advertisement


class Coins(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down: digests of all coins."""

    commitments: Annotated[dict[Name, bytes], msgspec.Meta(max_length=MOST_CLIENTS)]


class Coin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Up: the own coin, if the committee has this client."""

    opening: CoinOpening


class Neighbourhood(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down: the neighbours' keys and the committee's coins, with the tickets of all of these."""

    roster: Roster
    tickets: list[Ticket]


class Shares(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Up: round 2."""

    shares: EncryptedShares


class Inbox(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down: what neighbours encrypted for this client; answered by the masked vector."""

    shares: EncryptedShares


class Announced(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down: whose vectors are in the sum."""

    clients: Clients


class Codes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Up: confirmations for the neighbours."""

    said: Confirmations


class Confirmed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down: the neighbours' confirmations."""

    codes: Confirmations


class UnmaskingAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Up: round 4."""

    revealed: Revealed


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down: the sum is open, over so many clients."""

    round: Reference
    clients: int


class Abandoned(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down: the round was given up, nothing is opened; the client waits for the next one."""

    round: Reference
    reason: Text


class Refused(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down: a request is not answered, and why."""

    reason: Text


class AskItems(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Up: names of the items from a number on."""

    first: Annotated[int, msgspec.Meta(ge=0)]


class Items(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down: names of items, and how many there are."""

    first: int
    count: int
    names: Annotated[list[Text], msgspec.Meta(max_length=MOST_NAMES)]


class AskMeans(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Up: what every client needs of the kernel."""


class Means(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down: row means of the kernel and how many users rated each item, float64."""

    rounds: int
    means: bytes
    popularity: bytes


class AskRows(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Up: rows of the kernel."""

    items: Annotated[
        list[Annotated[int, msgspec.Meta(ge=0)]], msgspec.Meta(min_length=1, max_length=MOST_ROWS)
    ]


class KernelRows(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Down: how many rows of the kernel follow as bare bytes, float64."""

    rows: int
    items: int


Up = (
    ClientHello
    | Ready
    | ClientKeys
    | Coin
    | Shares
    | Codes
    | UnmaskingAnswer
    | AskItems
    | AskMeans
    | AskRows
)
Down = (
    Challenge
    | Welcome
    | RoundPending
    | RoundOffer
    | Coins
    | Neighbourhood
    | Inbox
    | Announced
    | Confirmed
    | Done
    | Abandoned
    | Refused
    | Items
    | Means
    | KernelRows
)

_read_up: Callable[[bytes], Up] = msgpack_reader(cast(Any, Up))
_read_down: Callable[[bytes], Down] = msgpack_reader(cast(Any, Down))
_encode = msgspec.msgpack.Encoder().encode

HEAD = 5
RECORD, VECTOR = 0, 1


def head(size: int, kind: int) -> bytes:
    """Make the five bytes before a body: its length and its kind."""
    return size.to_bytes(4, "big") + bytes([kind])


def read_head(raw: bytes) -> tuple[int, int]:
    """Read the length and the kind of the body that follows."""
    return int.from_bytes(raw[:4], "big"), raw[4]


def packed(message: Up | Down) -> bytes:
    """Encode a message with its head; refuse one that the other side would not read."""
    body = _encode(message)
    if len(body) > MAX_RECORD:
        raise WireError(f"message of {len(body)} bytes, at most {MAX_RECORD} are allowed")
    return head(len(body), RECORD) + body


def unpacked_up(body: bytes) -> Up:
    """Read what a client sent; WireError for anything else."""
    try:
        return _read_up(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise WireError(f"no message of this protocol: {error}") from None


def unpacked_down(body: bytes) -> Down:
    """Read what the server sent; WireError for anything else."""
    try:
        return _read_down(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise WireError(f"the server sent no message of this protocol: {error}") from None
