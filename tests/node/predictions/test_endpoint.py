"""The HTTP endpoint: tokens, limits and errors, and what its description promises."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import socket
import urllib.error
import urllib.request

import pytest
import schemathesis

from vertikal.errors import DiskFull, InputError, PeerStopped, RequestRefused, SecrecyError
from vertikal.node.config.party_file import Http
from vertikal.node.http import connections
from vertikal.node.predictions import endpoint
from vertikal.node.predictions.endpoint import (
    Endpoint,
    RequestHandler,
    application,
    read_token,
)
from vertikal.node.predictions.openapi import description

TOKEN = "0123456789abcdef-token"
SCORE = {"id": "7", "status": "ok", "value": 0.5, "unknown_at": "", "probability": {"yes": 0.6}}


def scores(model, ids, degraded, version):
    faults = {"none": InputError("no model"), "spent": SecrecyError("bank refused")}
    if model in faults:
        raise faults[model]
    if model == "lost":
        raise PeerStopped("bank is gone")
    if model == "full":
        raise DiskFull("'/secret/path' was not written")
    return [{**SCORE, "id": one} for one in ids]


def faultless(model, ids, degraded, version):
    """Score whatever model is named: what is drawn may be the name of a fault above."""
    return scores("credit", ids, degraded, version)


def settings(**changes):
    return Http(**{"listen": "127.0.0.1:0", "token_file": "token", "per_minute": 10**6, **changes})


@pytest.fixture
def served(tmp_path):
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    server = Endpoint(settings(most_bytes=5000, most_rows=10), tmp_path, scores)
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.stop()


def post(url, body, token=TOKEN):
    request = urllib.request.Request(f"{url}/predict", body, {"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def body(**changes):
    return json.dumps({"model": "credit", "ids": ["7"], **changes}).encode()


def test_scores_and_refusals(served):
    assert post(served, body()) == (200, {"model": "credit", "scores": [SCORE]})
    assert post(served, body(unknown="degraded", version=2))[0] == 200
    for sent, code, said in (
        (b"{", 400, "truncated"),
        (body(ids=[]), 400, "length >= 1"),
        (body(ids=["1"] * 11), 400, "ids must be at most 10, got 11"),
        (body(ids=[7]), 400, "Expected `str`"),
        (body(path="x"), 400, "unknown field"),
        (body(model="none"), 400, "no model"),
        (body(model="spent"), 403, "bank refused"),
        (body(model="lost"), 503, "bank is gone"),
        (body(model="full"), 503, "the disk of this party's store is full"),
        (body(ids=["x" * 6000]), 413, "at most 5000 bytes"),
    ):
        status, answer = post(served, sent)
        assert (status, said in answer["error"]) == (code, True), answer


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", "é"])
def test_only_the_token_opens(served, token):
    request_token = token.encode().decode("latin-1")
    status, answer = post(served, body(), request_token)
    assert status == 401
    assert "scores" not in answer


def test_tokens_are_compared_in_constant_time(monkeypatch):
    compared, real = [], hmac.compare_digest

    def compare(one, other):
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr(endpoint.hmac, "compare_digest", compare)
    handler = RequestHandler(settings(), TOKEN.encode(), scores)
    handler.admit(f"Bearer {TOKEN}", "3")
    for wrong in ("", "Bearer", "Bearer x", f"Basic {TOKEN}"):
        with pytest.raises(RequestRefused):
            handler.admit(wrong, "3")
    assert len(compared) == 5


def test_too_many_and_too_long_requests():
    handler = RequestHandler(settings(per_minute=2), TOKEN.encode(), scores)
    for _ in range(2):
        handler.admit(f"Bearer {TOKEN}", "3")
    with pytest.raises(RequestRefused, match="at most 2 requests a minute") as refused:
        handler.admit(f"Bearer {TOKEN}", "3")
    assert refused.value.status == 429
    handler = RequestHandler(settings(most_bytes=10), TOKEN.encode(), scores)
    for length, status in (("", 411), ("x", 411), ("11", 413)):
        with pytest.raises(RequestRefused) as refused:
            handler.admit(f"Bearer {TOKEN}", length)
        assert refused.value.status == status
    with pytest.raises(RequestRefused, match="at most 10 bytes"):
        handler.answer(b"x" * 11)


def raw_connection(url):
    host, _, port = url.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), 30)


def head(length, token=TOKEN, *more):
    lines = ["POST /predict HTTP/1.1", "Host: x", f"Authorization: Bearer {token}"]
    return "\r\n".join([*lines, f"Content-Length: {length}", *more, "", ""]).encode()


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """An endpoint with five requests a minute, which waits two seconds for slow clients.

    That is enough for a client on a busy machine.
    """
    monkeypatch.setattr(connections, "PATIENCE", 2.0)
    monkeypatch.setattr(endpoint, "BODY", 2.0)
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    server = Endpoint(settings(per_minute=5, most_bytes=5000), tmp_path, scores)
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.stop()


def test_requests_without_the_token_do_not_use_up_the_owners_rate(slow):
    for _ in range(20):
        assert post(slow, body(), "wrong")[0] == 401
    assert post(slow, body())[0] == 200


def test_half_open_requests_do_not_keep_the_owner_out(served):
    """64 connections that never end their request made all others get 503."""
    half = [raw_connection(served) for _ in range(300)]
    try:
        for number, one in enumerate(half):
            with contextlib.suppress(OSError):
                one.sendall(b"POST /predict HTTP/1.1\r\n" if number % 2 else head(3, "wrong")[:-2])
        for _ in range(3):
            assert post(served, body())[0] == 200
    finally:
        for one in half:
            one.close()


def is_closed(connection):
    """Wait until the other end has closed; bytes that it did not read make that a reset."""
    connection.settimeout(20)
    try:
        return connection.recv(100) == b""
    except ConnectionError:
        return True


def test_a_connection_that_shows_no_token_is_closed(slow):
    with raw_connection(slow) as silent, raw_connection(slow) as half:
        half.sendall(b"POST /predict HTTP/1.1\r\n")
        for one in (silent, half):
            assert is_closed(one)
    # One that was answered may stay for another request, and no longer.
    with raw_connection(slow) as kept:
        for _ in range(2):
            kept.sendall(head(len(body())) + body())
            heard = b""
            while not heard.endswith(b"}]}"):
                piece = kept.recv(4000)
                assert piece, heard
                heard += piece
            assert b"200 OK" in heard
        kept.sendall(b"POST")
        assert is_closed(kept)


def test_a_body_that_does_not_come_is_not_waited_for(slow):
    with raw_connection(slow) as lying:
        lying.sendall(head(100) + b"{}")
        lying.settimeout(20)
        assert b"408 Request Timeout" in lying.recv(4000)
    assert post(slow, body())[0] == 200


def test_no_more_of_a_body_is_kept_than_may_come():
    """Chunks can bring more than the Content-Length beside them says."""
    handler = RequestHandler(settings(most_bytes=5000), TOKEN.encode(), scores)
    read, sent = [], []

    async def receive():
        read.append(1000)
        return {"type": "http.request", "body": b"x" * 1000, "more_body": True}

    async def send(message):
        sent.append(message)

    headers = {"authorization": f"Bearer {TOKEN}", "content-length": "3"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/predict",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "query_string": b"",
        "client": ("127.0.0.1", 1),
    }
    asyncio.run(application(handler)(scope, receive, send))
    assert sent[0]["status"] == 413
    assert sum(read) <= 7000


@pytest.mark.parametrize("length", ["²", "9" * 5000, "-1", "1.5"])
def test_a_length_that_is_no_number(length):
    handler = RequestHandler(settings(), TOKEN.encode(), scores)
    with pytest.raises(RequestRefused) as refused:
        handler.admit(f"Bearer {TOKEN}", length)
    assert refused.value.status in (411, 413)


def test_token_files(tmp_path):
    made = read_token(tmp_path / "token")
    assert len(made) >= 32
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert read_token(tmp_path / "token") == made
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(InputError, match="readable by its owner only"):
        read_token(tmp_path / "token")
    (tmp_path / "short").write_text("abc")
    (tmp_path / "short").chmod(0o600)
    with pytest.raises(InputError, match="16 characters at least"):
        read_token(tmp_path / "short")


def test_a_port_that_is_taken(served, tmp_path):
    taken = settings(listen=served.removeprefix("http://"))
    with pytest.raises(InputError, match="cannot listen at"):
        Endpoint(taken, tmp_path, scores).start()


def test_the_description_is_served(served):
    with urllib.request.urlopen(f"{served}/openapi.json", timeout=30) as answer:
        assert json.load(answer) == description()


schema = schemathesis.openapi.from_asgi(
    "/openapi.json", application(RequestHandler(settings(), TOKEN.encode(), faultless))
)


@pytest.mark.slow
@schema.parametrize()
def test_schemathesis_finds_nothing(case):
    case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"})
