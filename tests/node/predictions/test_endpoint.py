"""The HTTP endpoint: tokens, limits and errors, and what its description promises."""

from __future__ import annotations

import hmac
import json
import urllib.error
import urllib.request

import pytest
import schemathesis

from vertikal.errors import DiskFull, InputError, PeerStopped, RequestRefused, SecrecyError
from vertikal.node.config.party_file import Http
from vertikal.node.predictions import endpoint
from vertikal.node.predictions.endpoint import (
    Endpoint,
    RequestHandler,
    application,
    read_token,
)
from vertikal.node.predictions.openapi import description

TOKEN = "0123456789abcdef-token"
SCORE = {"id": "7", "status": "ok", "value": 0.5, "unknown_at": "", "probability": 0.6}


def scores(model, ids, degraded, version):
    faults = {"none": InputError("no model"), "spent": SecrecyError("bank refused")}
    if model in faults:
        raise faults[model]
    if model == "lost":
        raise PeerStopped("bank is gone")
    if model == "full":
        raise DiskFull("'/secret/path' was not written")
    return [{**SCORE, "id": one} for one in ids]


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
    "/openapi.json", application(RequestHandler(settings(), TOKEN.encode(), scores))
)


@pytest.mark.slow
@schema.parametrize()
def test_schemathesis_finds_nothing(case):
    case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"})
