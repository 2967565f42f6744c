"""Versions of a model: which one predicts, and which one is kept back."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from tests.node.services import trio
from tests.organisations import RULE, lay_out, write_job
from vertikal.metrics.intervals import Interval
from vertikal.metrics.measures import Measures
from vertikal.node.config.job_file import Job
from vertikal.node.models.evaluation import Evaluation
from vertikal.node.models.succession import KEPT_BACK, reason_to_keep_back, usable
from vertikal.node.runs import party_run
from vertikal.node.storage.audit_log import read


def evaluation(value, main="auc"):
    measures = Measures(50, {main: Interval(value, None, None)})
    return Evaluation("at random", 200, "lender", measures, measures)


def version(number, value=None, **facts):
    return SimpleNamespace(
        name="credit", version=number, facts=facts, evaluation=value and evaluation(value)
    )


class Models:
    """A store with these versions of one model."""

    def __init__(self, *versions):
        self.stored = versions

    def versions(self, damaged):
        return list(self.stored)

    def details(self, name, number):
        one = next(one for one in self.stored if one.version == number)
        return one, None, one.evaluation


@pytest.mark.parametrize(
    ("stored", "value", "reason"),
    [
        ([], 0.7, ""),
        ([version(1, 0.7)], 0.7, ""),
        ([version(1, 0.7)], 0.8, ""),
        ([version(1, 0.7)], 0.69, "AUC 0.690 held out, worse than 0.700 of version 1, which stays"),
        ([version(1, 0.7)], None, "AUC unknown held out, worse than 0.700 of version 1"),
        # What counts is the version in use, not one that was kept back.
        ([version(1, 0.7), version(2, 0.6, kept_back="…")], 0.65, "0.700 of version 1"),
        ([version(1, 0.7), version(2, 0.6)], 0.65, ""),
        ([version(1)], 0.1, ""),
    ],
)
def test_a_version_that_is_worse_is_kept_back(stored, value, reason):
    found = reason_to_keep_back(Models(*stored), "credit", evaluation(value))
    assert found.startswith(reason) if "held" in reason else reason in found
    assert bool(found) is bool(reason)


def test_small_errors_are_good_and_other_measures_are_not_compared():
    models = Models(version(1))
    models.stored[0].evaluation = evaluation(2.0, "rmse")
    assert reason_to_keep_back(models, "credit", evaluation(1.9, "rmse")) == ""
    assert "worse than 2.000" in reason_to_keep_back(models, "credit", evaluation(2.1, "rmse"))
    found = reason_to_keep_back(models, "credit", evaluation(0.9, "auc"))
    assert found == "it is not measured by RMSE, as version 1 is"


def test_an_earlier_run_of_the_same_job_is_not_compared_with():
    first, again = version(1, 0.7), version(2, 0.9)
    models = Models(first, again)
    assert "version 2" in reason_to_keep_back(models, "credit", evaluation(0.8))
    assert reason_to_keep_back(models, "credit", evaluation(0.8), without=[again]) == ""


def test_if_all_are_kept_back_all_may_be_used():
    first, second = version(1, kept_back="…"), version(2, kept_back="…")
    assert usable([first, second]) == [first, second]
    assert usable([version(3), first])[0].version == 3


@pytest.mark.usefixtures("quick_beats")
def test_predictions_stay_with_the_old_version_until_a_new_one_is_no_worse(tmp_path, monkeypatch):
    lay_out(tmp_path, rows=60, policy={"bank": RULE, "shop": RULE})
    write_job(
        tmp_path,
        directions=16,
        settings='disclosure = "open"',
        top='replaces = "no worse"',
        rest="[evaluation]\nholdout = 0.3",
    )
    job = msgspec.to_builtins(Job.load(tmp_path / "lender" / "credit.toml"))
    real = party_run.evaluate

    def submit(lender, measured):
        def evaluate(*arguments):
            found = real(*arguments)
            return found and msgspec.structs.replace(found, together=measured.together)

        monkeypatch.setattr(party_run, "evaluate", evaluate)
        return lender.answer({"command": "submit", "name": "credit", "job": job, "least_change": 5})

    with trio(tmp_path) as world:
        lender, used = world["lender"], []
        for value in (0.8, 0.7, 0.8):
            world.done(submit(lender, evaluation(value))["digest"])
            assert lender.predict("credit", ("1001",), None, None)[0]["status"] == "ok"
            lines = read(lender.home.store / "audit.log")
            used.append([one.facts["digest"] for one in lines if one.event == "predictions"][-1])
            change_rows(tmp_path, 4)
            assert submit(lender, evaluation(0.9)) == {"changed": 4}
            change_rows(tmp_path, 30)  # enough for the check against differencing
        first, _, third = (one.digest for one in lender.book.all())
        assert used == [first, first, third]
        facts = [one.facts for one in world.models("lender").versions()]
        assert [KEPT_BACK in one for one in facts] == [False, True, False]
        # It is there for whoever asks for it by its number.
        assert lender.predict("credit", ("1001",), None, 2)[0]["status"] == "ok"


def change_rows(root, count):
    """Change a cell of the first rows of the lender's table."""
    path = root / "lender" / "people.csv"
    titles, *rows = path.read_text().splitlines()
    changed = [row.split(",") for row in rows]
    for cells in changed[:count]:
        cells[1] = str(float(cells[1]) + 1.5)
    path.write_text("\n".join([titles, *(",".join(cells) for cells in changed)]) + "\n")
