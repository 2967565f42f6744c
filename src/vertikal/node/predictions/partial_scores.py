"""Scores of as many ids as all parties allow, where they do not allow all that are asked for.

Parties that refuse a request say how many rows they have left today, or which rows were asked about
too often. The request is repeated without these; each time it is smaller, and refused ids take no
row of the day.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vertikal.errors import PredictionRefused

Ask = Callable[[tuple[str, ...]], list[dict[str, Any]]]
"""Scores all of these ids, one record each in their order, or raises PredictionRefused."""

REFUSED = "refused"


@dataclass(frozen=True)
class PartialScores:
    """One record per id that was asked for, and why some have no score."""

    scores: list[dict[str, Any]]
    reason: str = ""
    """The last refusal, in words."""
    used_up: bool = False
    """True if a party has no row left today, so that further ids need not be asked for."""


def score_what_is_allowed(ask: Ask, ids: Sequence[str]) -> PartialScores:
    """Score these ids but those that some party refuses; a refusal of all of them is raised."""
    left, reason, used_up = list(range(len(ids))), "", False
    found: list[dict[str, Any]] = []
    while left:
        try:
            found = ask(tuple(ids[place] for place in left))
            break
        except PredictionRefused as error:
            spent = set(error.rows_spent)
            fewer = [place for row, place in enumerate(left) if row not in spent]
            if error.rows_left is not None:
                used_up = True
                fewer = fewer[: error.rows_left]
            if len(fewer) == len(left):
                raise
            left, reason = fewer, str(error)
    scores = {place: one for place, one in zip(left, found, strict=True)}
    blank = {"status": REFUSED, "value": None, "unknown_at": ""}
    return PartialScores(
        [scores.get(place, {"id": one, **blank}) for place, one in enumerate(ids)], reason, used_up
    )
