"""Requests and answers of the HTTP endpoint, and the OpenAPI description made from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from vertikal.records import json_schemas
from vertikal.version import __version__

MOST_VERSIONS = 1_000_000

_REFUSALS = {
    "400": "The request cannot be used as it is.",
    "401": "No token, or a wrong one.",
    "403": "A party refused: too many rows today, or its policy.",
    "408": "The body did not come in time.",
    "411": "No Content-Length.",
    "413": "The body is too large.",
    "429": "Too many requests.",
    "503": "A party is not there, the disk of this one is full, or too many ask at once.",
}


def _text(description: str) -> msgspec.Meta:
    return msgspec.Meta(description=description)


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ids to score with a model."""

    model: Annotated[str, _text("Name of the model.")]
    ids: Annotated[
        tuple[str, ...],
        msgspec.Meta(min_length=1, description="People to score, by the ids of the tables."),
    ]
    version: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=MOST_VERSIONS)] | None,
        _text("Version of the model; the newest that is done and not kept back by default."),
    ] = None
    unknown: Annotated[
        Literal["reject", "degraded"] | None,
        _text(
            "Treatment of an id that a party lacks; by default as the policy says. 'degraded' "
            "needs the consent of every other party."
        ),
    ] = None


class Score(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The score of one id."""

    id: str
    status: Literal["ok", "degraded", "unknown"]
    value: Annotated[
        float | dict[str, float | None] | None,
        _text("The model's output f; one for each class if there are more than two."),
    ]
    unknown_at: Annotated[str, _text("Parties that lack the id.")]
    probability: Annotated[
        dict[str, float | None] | msgspec.UnsetType,
        _text("Probability by class: of two classes that of the positive one."),
    ] = msgspec.UNSET
    predicted: Annotated[
        str | msgspec.UnsetType | None, _text("Name of the class; left out in a regression.")
    ] = msgspec.UNSET


class Answer(msgspec.Struct, frozen=True):
    """One score per id, in the order of the request."""

    model: str
    scores: tuple[Score, ...]


class Failure(msgspec.Struct, frozen=True):
    """The reason why there are no scores."""

    error: str


def description() -> dict[str, Any]:
    """Make the document that ``GET /openapi.json`` gives."""
    (request, answer, failure), schemas = json_schemas(
        (Request, Answer, Failure), "#/components/schemas/{name}"
    )
    responses: dict[str, Any] = {
        code: {"description": text, "content": _json(failure)} for code, text in _REFUSALS.items()
    }
    responses["200"] = {"description": Answer.__doc__, "content": _json(answer)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Vertikal predictions", "version": __version__},
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
        "paths": {
            "/predict": {
                "post": {
                    "summary": "Score people by their ids.",
                    "operationId": "predict",
                    "requestBody": {"required": True, "content": _json(request)},
                    "responses": responses,
                }
            }
        },
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
