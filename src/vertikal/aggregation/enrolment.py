"""Enrolment: an authority signs the key of each client, and every client checks every other's.

A server that could invent clients would surround a victim with its own and open the victim's
vector. So names and keys count only with a signature of the authority, whose public key each client
has before it joins. Whoever holds the authority's key can invent clients: give it to somebody else
than the server.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from vertikal.errors import IdentityError
from vertikal.mesh.wire import MAX_NAME
from vertikal.secure.keys.prg import encode_texts
from vertikal.secure.secagg.client_keys import SigningKey, is_signed

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
PublicKey = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Signature = Annotated[bytes, msgspec.Meta(min_length=64, max_length=64)]


class Ticket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A client's name and public key, signed by the authority of one aggregation."""

    name: Name
    key: PublicKey
    signature: Signature


def enrol(authority: SigningKey, aggregation: str, name: str, key: bytes) -> Ticket:
    """Sign a client's key for one aggregation."""
    return Ticket(name, key, authority.sign(*_signed_parts(aggregation, name, key)))


def check_ticket(ticket: Ticket, aggregation: str, authority: bytes) -> None:
    """Refuse a ticket that the authority has not signed for this aggregation."""
    parts = _signed_parts(aggregation, ticket.name, ticket.key)
    if not ticket.name.isprintable() or not is_signed(authority, ticket.signature, *parts):
        raise IdentityError(
            f"{ticket.name!r} is not enrolled: the ticket is not signed by the authority of "
            f"{aggregation!r}"
        )


def _signed_parts(aggregation: str, name: str, key: bytes) -> tuple[bytes, ...]:
    return encode_texts("vertikal enrolment", aggregation, name), key


def hello_parts(aggregation: str, fingerprint: str, nonce: bytes) -> tuple[bytes, ...]:
    """List the parts that a client signs to show that the ticket's key is its own.

    The server's fingerprint is among them, so that no other server can pass the answer on.
    """
    return encode_texts("vertikal hello", aggregation, fingerprint), nonce


def job_of(aggregation: str, reference: str) -> str:
    """Name a round in what its clients sign, so that it counts for no other aggregation."""
    return f"{aggregation} {reference}"
