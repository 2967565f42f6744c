"""Scores of as many ids as all parties allow: what is asked again, and what is left out."""

from __future__ import annotations

import pytest

from vertikal.errors import PredictionRefused
from vertikal.node.predictions.partial_scores import score_what_is_allowed

IDS = tuple("abcdef")


def parties(left, spent=()):
    """Answer as parties that have so many rows left today, and were asked too often about some."""
    asked = []

    def ask(ids):
        asked.append("".join(ids))
        error = PredictionRefused(f"bank refused {len(ids)} rows")
        error.rows_spent = tuple(row for row, one in enumerate(ids) if one in spent)
        if len(ids) > left:
            error.rows_left, error.rows_spent = left, ()
        if len(ids) > left or error.rows_spent:
            raise error
        return [{"id": one, "status": "ok"} for one in ids]

    return ask, asked


@pytest.mark.parametrize(
    ("left", "spent", "asked", "scored", "used_up"),
    [
        (9, "", ["abcdef"], "abcdef", False),
        (4, "", ["abcdef", "abcd"], "abcd", True),
        (9, "be", ["abcdef", "acdf"], "acdf", False),
        (4, "be", ["abcdef", "abcd", "acd"], "acd", True),
        (0, "", ["abcdef"], "", True),
        (9, IDS, ["abcdef"], "", False),
    ],
)
def test_a_request_shrinks_until_it_is_allowed(left, spent, asked, scored, used_up):
    ask, questions = parties(left, spent)
    found = score_what_is_allowed(ask, IDS)
    assert questions == asked
    assert [one["id"] for one in found.scores] == list(IDS)
    assert "".join(one["id"] for one in found.scores if one["status"] == "ok") == scored
    assert {one["status"] for one in found.scores} <= {"ok", "refused"}
    assert (found.reason == "") is (scored == "abcdef")
    assert found.used_up is used_up


def test_a_refusal_without_a_way_out_is_raised():
    def ask(ids):
        raise PredictionRefused("bank has no model of this job")

    with pytest.raises(PredictionRefused, match="no model"):
        score_what_is_allowed(ask, IDS)


def test_a_party_that_would_allow_as_many_as_were_asked_is_not_asked_for_ever():
    def ask(ids):
        error = PredictionRefused("bank refused")
        error.rows_left = len(ids)
        raise error

    with pytest.raises(PredictionRefused):
        score_what_is_allowed(ask, IDS)


def test_nobody_is_asked_about_nobody():
    assert score_what_is_allowed(lambda ids: pytest.fail("asked"), ()).scores == []
