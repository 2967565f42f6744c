"""Predictions over HTTP at the label party: ``POST /predict``, described in OpenAPI.

It listens on loopback only; to reach it from elsewhere, put a proxy with TLS before it. Every
request carries a token, compared in constant time; requests a minute, rows and bytes are limited.
Requests without the token count for nothing, and `http/connections.py` bounds what they hold.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec

from vertikal.errors import (
    DiskFull,
    InputError,
    MeshError,
    RequestRefused,
    SecrecyError,
    VertikalError,
)
from vertikal.files import write_whole
from vertikal.node.config.party_file import Http
from vertikal.node.http.server import HttpServer
from vertikal.node.predictions.openapi import Answer, Failure, Request, Score, description
from vertikal.node.rate_limit import RateLimit
from vertikal.records import convert

Predict = Callable[[str, tuple[str, ...], bool | None, int | None], list[dict[str, Any]]]


def read_request(body: bytes) -> Request:
    """Read a body as a `Request`; JSON has one kind of number, so 2.0 is a whole one."""
    content = msgspec.json.decode(body)
    version = content.get("version") if isinstance(content, dict) else None
    if isinstance(version, float) and version.is_integer():
        content["version"] = int(version)
    return convert(content, Request)


BODY = 20.0
"""Seconds that the body of a request may take."""
MOST_DIGITS = 15
"""Digits of a Content-Length that are read as a number."""
AT_ONCE = 64
"""Requests with the token that are answered at the same time."""


class RequestHandler:
    """Checks requests and answers them with scores, whatever server carries them."""

    def __init__(self, settings: Http, token: bytes, predict: Predict) -> None:
        self._settings = settings
        self._token = token
        self._predict = predict
        self._rate = RateLimit(settings.per_minute, 60.0)

    def admit(self, authorization: str, length: str) -> None:
        """Refuse a request without the token, one too many, or one with too long a body."""
        scheme, _, token = authorization.partition(" ")
        given = token.strip().encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._token) or scheme.lower() != "bearer":
            raise RequestRefused(401, "the header Authorization must be 'Bearer ' and the token")
        # After the token: nobody else's requests may use up those of the owner.
        if not self._rate.take():
            raise RequestRefused(
                429,
                f"at most {self._settings.per_minute} requests a minute are answered; wait",
            )
        if not (length.isascii() and length.isdigit()):
            raise RequestRefused(411, "the header Content-Length must say how long the body is")
        if len(length) > MOST_DIGITS or int(length) > self._settings.most_bytes:
            raise self._too_long()

    async def read_body(self, pieces: AsyncIterator[bytes]) -> bytes:
        """Read a body that may be longer than was said, or may not come; keep no more than may."""
        received = bytearray()
        try:
            async with asyncio.timeout(BODY):
                async for piece in pieces:
                    received += piece
                    if len(received) > self._settings.most_bytes:
                        raise self._too_long()
        except TimeoutError:
            raise RequestRefused(
                408, f"the body must come within {BODY:g} s, as long as Content-Length says"
            ) from None
        return bytes(received)

    def _too_long(self) -> RequestRefused:
        return RequestRefused(413, f"the body must have at most {self._settings.most_bytes} bytes")

    def answer(self, body: bytes) -> bytes:
        """Answer a body with the scores as JSON."""
        if len(body) > self._settings.most_bytes:
            raise self._too_long()
        try:
            request = read_request(body)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise RequestRefused(400, f"body: {error}") from None
        if len(request.ids) > self._settings.most_rows:
            raise RequestRefused(
                400, f"ids must be at most {self._settings.most_rows}, got {len(request.ids)}"
            )
        degraded = None if request.unknown is None else request.unknown == "degraded"
        try:
            scores = self._predict(request.model, request.ids, degraded, request.version)
        except InputError as error:
            raise RequestRefused(400, _line(error)) from None
        except SecrecyError as error:
            raise RequestRefused(403, _line(error)) from None
        except MeshError as error:
            raise RequestRefused(503, _line(error)) from None
        except DiskFull:
            raise RequestRefused(503, "the disk of this party's store is full") from None
        return msgspec.json.encode(Answer(request.model, convert(scores, tuple[Score, ...])))


class Endpoint:
    """The HTTP server of predictions."""

    def __init__(self, settings: Http, folder: Path, predict: Predict) -> None:
        handler = RequestHandler(settings, read_token(folder / settings.token_file), predict)
        self._server = HttpServer(
            settings.listen, "[http]", lambda admitted: application(handler, admitted)
        )

    @property
    def port(self) -> int:
        return self._server.port

    def start(self) -> None:
        """Listen; requests may come as soon as this returns."""
        self._server.start()

    def stop(self) -> None:
        self._server.stop()


def application(
    handler: RequestHandler, admitted: Callable[[Any], object] = lambda client: None
) -> Any:
    """Make the routes around a handler; ``admitted`` hears of whom a request showed the token."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect
    from starlette.requests import Request as Incoming
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    working = 0

    async def scores(request: Incoming) -> Response:
        with contextlib.suppress(ClientDisconnect):
            body = await handler.read_body(request.stream())
            answer = await run_in_threadpool(handler.answer, body)
            return Response(answer, media_type="application/json")
        return Response(status_code=400)

    async def predict(request: Incoming) -> Response:
        nonlocal working
        try:
            handler.admit(
                request.headers.get("authorization", ""),
                request.headers.get("content-length", ""),
            )
            if working >= AT_ONCE:
                raise RequestRefused(503, f"at most {AT_ONCE} requests are answered at once; wait")
            admitted(request.scope["client"])
            working += 1
            try:
                return await scores(request)
            finally:
                working -= 1
        except RequestRefused as refusal:
            headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else None
            failure = msgspec.json.encode(Failure(str(refusal)))
            return Response(failure, refusal.status, headers, "application/json")

    async def describe(_: Incoming) -> Response:
        return JSONResponse(description())

    return Starlette(
        routes=[
            Route("/predict", predict, methods=["POST"]),
            Route("/openapi.json", describe, methods=["GET"]),
        ]
    )


def read_token(path: Path) -> bytes:
    """Read the token in this file, or make one; refuse a file that others can read."""
    if not path.exists():
        write_whole(path, secrets.token_urlsafe(32).encode())
    mode = path.stat().st_mode & 0o077
    if mode:
        raise InputError(f"token file {path.name!r} must be readable by its owner only; chmod 600")
    token = path.read_bytes().strip()
    if len(token) < 16:
        raise InputError(f"token file {path.name!r} must hold 16 characters at least")
    return token


def _line(error: VertikalError) -> str:
    return " ".join(str(error).split())
