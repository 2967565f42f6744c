"""Questions about one person with one model are counted, whatever is asked and how often a party
is started."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.node.services import trio
from tests.organisations import RULE, lay_out, write_job
from vertikal.algorithms.kernel_machine import fdskl
from vertikal.errors import PredictionRefused

pytestmark = pytest.mark.usefixtures("quick_beats")

DIRECTIONS = 48


def test_unit_vectors_for_all_features_of_a_person_are_refused(tmp_path, monkeypatch):
    """A label party that asks for one cosine at a time, in place of f by its coefficients."""
    lay_out(tmp_path, rows=60, policy={"bank": RULE, "shop": RULE})
    write_job(tmp_path, directions=DIRECTIONS, settings='disclosure = "values"')
    real, cosines = fdskl.predict, []

    def predict(party, shard):
        if party.name == "lender":
            unit = np.zeros_like(shard.coefficients)
            unit[len(cosines)] = 1.0
            shard = replace(shard, coefficients=unit)
        return real(party, shard)

    with trio(tmp_path) as world:
        world.done(world.submit().digest)
        monkeypatch.setattr(fdskl, "predict", predict)

        def ask():
            while len(cosines) < DIRECTIONS:
                cosines.append(world["lender"].predict("credit", ("1001",), None, None)[0]["value"])

        said = r"(bank|shop) refused .* row 1 of the request .* the 32 times"
        with pytest.raises(PredictionRefused, match=said):
            ask()
        assert len(cosines) == 32
        # Other people may be asked about, and this one with another model.
        assert world["lender"].predict("credit", ("1002",), None, None)[0]["status"] == "ok"


def test_questions_are_counted_over_restarts_and_spellings(tmp_path):
    few = "most_questions = 3\n" + RULE
    lay_out(tmp_path, rows=60, policy={"bank": few, "shop": RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "values"')
    with trio(tmp_path) as world:
        digest = world.submit().digest
        world.done(digest)
        shown = world["bank"].answer({"command": "show", "job": digest})["text"]
        assert (
            "up to 3 about one person with this model (most_questions), which is 36 bits" in shown
        )
        assert "proposals of lender: 200 a day (proposals_per_day)" in shown
        world["lender"].predict("credit", ("1001", " 1001 ", "1002", "nobody"), None, None)
        world.stop("bank")
        world.start("bank")
        world.connected()
        ask = world["lender"].predict
        refused = "bank refused these predictions: who is in row 2, 3 of the request would be asked"
        with pytest.raises(PredictionRefused, match=refused):
            ask("credit", ("1002", "1001", "1001"), None, None)
        # Nothing of a refused request is booked.
        assert ask("credit", ("1002", "1001"), None, None)[0]["status"] == "ok"
        with pytest.raises(PredictionRefused, match="who is in row 1 of the request"):
            ask("credit", ("1001",), None, None)
        # Another model of the same people is another one to ask.
        world.done(world.submit().digest)
        assert ask("credit", ("1001",), None, None)[0]["status"] == "ok"
        with pytest.raises(PredictionRefused, match="who is in row 1 of the request"):
            ask("credit", ("1001",), None, 1)
