"""Forms as browsers send them: fields by name, and files as text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from urllib.parse import parse_qsl

from vertikal.errors import RequestRefused

MOST_BYTES = 4 << 20
"""Bytes of a form: a few ids, or a file of some hundred thousand."""
MOST_FIELDS = 50
PATIENCE = 20.0
"""Seconds in which a form has to come."""


async def read_body(pieces: AsyncIterator[bytes]) -> bytes:
    """Read the body of a request, and keep no more of it than a form may have."""
    received = bytearray()
    try:
        async with asyncio.timeout(PATIENCE):
            async for piece in pieces:
                received += piece
                if len(received) > MOST_BYTES:
                    raise RequestRefused(413, f"a form must have at most {MOST_BYTES:,} bytes")
    except TimeoutError:
        raise RequestRefused(408, f"a form must come within {PATIENCE:g} s") from None
    return bytes(received)


def read_form(content_type: str, body: bytes) -> dict[str, str]:
    """Read the fields of a form; of several of one name the last counts."""
    kind = content_type.partition(";")[0].strip().lower()
    try:
        if kind == "application/x-www-form-urlencoded":
            pairs = parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"
            )
            return dict(pairs)
        if kind == "multipart/form-data":
            return _parts(content_type, body)
    except (ValueError, UnicodeDecodeError) as error:
        raise RequestRefused(400, f"the form cannot be read: {error}") from None
    raise RequestRefused(415, "a form must be sent as browsers send it")


def _parts(content_type: str, body: bytes) -> dict[str, str]:
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1")
    message = BytesParser(policy=HTTP).parsebytes(head + body)
    parts = message.get_payload()
    if not isinstance(parts, list):
        raise ValueError("its parts are not told apart")
    if len(parts) > MOST_FIELDS:
        raise ValueError(f"it has more than {MOST_FIELDS} fields")
    return {_name(part): _text(part) for part in parts if isinstance(part, Message)}


def _name(part: Message) -> str:
    name = part.get_param("name", header="content-disposition")
    return name if isinstance(name, str) else ""


def _text(part: Message) -> str:
    payload = part.get_payload(decode=True)
    return payload.decode("utf-8-sig") if isinstance(payload, bytes) else ""
