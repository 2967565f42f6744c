"""The OpenAPI description of the HTTP endpoint."""

from __future__ import annotations

from typing import Any

from vertikal.version import __version__

MOST_VERSIONS = 1_000_000

_REQUEST = {
    "type": "object",
    "required": ["model", "ids"],
    "additionalProperties": False,
    "properties": {
        "model": {"type": "string", "description": "Name of the model."},
        "ids": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "string"},
            "description": "Whom to score, by the ids of the tables.",
        },
        "version": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": MOST_VERSIONS,
            "description": "Version of the model; the newest that is done by default.",
        },
        "unknown": {
            "enum": ["reject", "degraded", None],
            "description": "For an id that a party lacks; by default as the policy says. "
            "'degraded' needs the leave of every other party.",
        },
    },
}
_SCORE = {
    "type": "object",
    "required": ["id", "status", "value", "unknown_at"],
    "properties": {
        "id": {"type": "string"},
        "status": {"enum": ["ok", "degraded", "unknown"]},
        "value": {"type": ["number", "null"], "description": "The model's output f."},
        "probability": {"type": ["number", "null"], "description": "Of the second class."},
        "unknown_at": {"type": "string", "description": "Parties that lack the id."},
    },
}
_ANSWER = {
    "type": "object",
    "required": ["model", "scores"],
    "properties": {"model": {"type": "string"}, "scores": {"type": "array", "items": _SCORE}},
}
_ERROR = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
_REFUSALS = {
    "400": "The request cannot be used as it is.",
    "401": "No token, or a wrong one.",
    "403": "A party refused: too many rows today, or its policy.",
    "411": "No Content-Length.",
    "413": "The body is too large.",
    "429": "Too many requests.",
    "503": "A party is not there, or the disk of this one is full.",
}


def description() -> dict[str, Any]:
    """The document that ``GET /openapi.json`` gives."""
    answers: dict[str, Any] = {
        code: {"description": words, "content": {"application/json": {"schema": _ERROR}}}
        for code, words in _REFUSALS.items()
    }
    answers["200"] = {
        "description": "One score per id, in the order of the request.",
        "content": {"application/json": {"schema": _ANSWER}},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Vertikal predictions", "version": __version__},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": {
            "/predict": {
                "post": {
                    "summary": "Score people by their ids.",
                    "operationId": "predict",
                    "requestBody": {
                        "required": True,
                        "content": {"application/json": {"schema": _REQUEST}},
                    },
                    "responses": answers,
                }
            }
        },
    }
