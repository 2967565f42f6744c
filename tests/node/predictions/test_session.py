"""One session of predictions: which rows are scored, and which are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.node.services import trio
from tests.organisations import DEGRADED, RULE, lay_out, write_job
from tests.waiting import until
from vertikal.errors import InputError, PeerStopped, PredictionRefused
from vertikal.node.predictions.model_cache import KnownRows
from vertikal.node.predictions.session import KNOWN
from vertikal.node.storage.question_count import QuestionCount
from vertikal.party.party import Party

pytestmark = pytest.mark.usefixtures("quick_beats")

IDS = ("1001", "1002")


def test_rows_a_day_are_limited(tmp_path):
    lay_out(tmp_path, rows=60, policy={"bank": "predictions_per_day = 3\n" + RULE, "shop": RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        world.done(world.submit().digest)
        lender = world["lender"]
        assert [one["status"] for one in lender.predict("credit", ("1001", "x"), None, None)] == [
            "ok",
            "unknown",
        ]
        with pytest.raises(
            Exception, match="bank refused these predictions: 2 rows asked for, 2 of 3"
        ):
            lender.predict("credit", ("1001", "1002"), None, None)
        assert lender.predict("credit", ("1002",), None, None)[0]["status"] == "ok"
        with pytest.raises(InputError, match="predictions are asked for by lender"):
            world["bank"].predict("credit", ("1001",), None, None)


def test_refused_and_interrupted_predictions_give_their_rows_and_questions_back(
    tmp_path, monkeypatch
):
    day = "predictions_per_day = 4\n"
    few = day + "most_questions = 2\n"
    lay_out(tmp_path, rows=60, policy={"bank": few + RULE, "shop": day + RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        digest = world.submit().digest
        world.done(digest)
        lender, known = world["lender"], KnownRows.known

        def interrupted(self, ids):
            """At the leader, when the others have been asked."""
            if self.source.party == "lender":
                raise KeyboardInterrupt
            return known(self, ids)

        def left(name):
            rows = (tmp_path / name / "store" / "predictions").read_text().split()[1]
            questions = QuestionCount(tmp_path / name / "store" / "questions", 2)
            return int(rows), questions.asked(digest, [b"1001", b"1002"])

        assert lender.predict("credit", ("1001",), None, None)[0]["status"] == "ok"
        lender.predict("credit", ("1001",), None, None)
        # The bank refuses, after the shop has booked.
        with pytest.raises(PredictionRefused, match="the 2 times that are allowed"):
            lender.predict("credit", ("1001", "1002"), None, None)
        with monkeypatch.context() as patch:
            patch.setattr(KnownRows, "known", interrupted)
            with pytest.raises(KeyboardInterrupt):
                lender.predict("credit", ("1002",), None, None)
        until(lambda: [left(name) for name in ("bank", "shop")] == 2 * [(2, [2, 0])], "given back")
        assert lender.predict("credit", ("1002",), None, None)[0]["status"] == "ok"
        assert [left(name) for name in ("bank", "shop")] == 2 * [(3, [2, 1])]


def test_degraded_predictions_need_the_leave_of_every_other_party(tmp_path):
    """Of an id that only the bank has, the score would be about the bank's row alone."""
    lay_out(tmp_path, rows=60, policy={"bank": RULE, "shop": DEGRADED + RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        digest = world.submit().digest
        world.done(digest)
        lender = world["lender"]
        for ids in (("1001", "stranger"), ("1001",)):
            with pytest.raises(
                PredictionRefused, match=r"bank refused .* set degraded_predictions$"
            ):
                lender.predict("credit", ids, True, None)
        assert lender.predict("credit", ("1001",), False, None)[0]["status"] == "ok"
        allowed = {
            name: "degraded predictions: your policy allows them"
            in world[name].answer({"command": "show", "job": digest})["text"]
            for name in ("bank", "shop")
        }
        assert allowed == {"bank": False, "shop": True}


def test_rows_that_a_party_lacks_are_not_scored_behind_the_others_backs(world, monkeypatch):
    """A leader that says that it asks for common ids, and then chooses others as well."""
    world.done(world.submit().digest)
    lender = world["lender"]
    real = Party.broadcast

    def deaf(party, payload, tree, disclosure):
        heard = real(party, payload, tree, disclosure)
        # Whatever the others answer, the leader takes it that they have all of these ids.
        told = disclosure is KNOWN and party.name == "lender"
        return np.ones(len(ids), np.uint8) if told else heard

    monkeypatch.setattr(Party, "broadcast", deaf)
    # The shop lacks this one, the others have it.
    ids = ("1001", str(1000 + 60 + 2 * 20))
    with pytest.raises(PeerStopped, match="lender chose rows that shop does not have"):
        lender.predict("credit", ids, False, None)
    # Nor are rows that a party has refused to score.
    ids = ("1001",)
    with pytest.raises(PeerStopped, match=r"lender chose rows that (bank|shop) has refused"):
        lender.predict("credit", ids, True, None)


def test_unknown_ids_are_rejected_or_scored_at_the_means(tmp_path):
    policy = {"bank": DEGRADED + RULE, "shop": DEGRADED + RULE}
    lay_out(tmp_path, rows=60, policy=policy)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        world.done(world.submit().digest)
        lender = world["lender"]
        known, strange = lender.predict("credit", ("1001", "stranger"), True, None)
        assert (known["status"], strange["status"]) == ("ok", "degraded")
        assert strange["unknown_at"] == "lender, bank, shop"
        assert np.isfinite(strange["value"])
        alone = lender.predict("credit", ("1001",), True, None)[0]
        assert alone["value"] == pytest.approx(known["value"], rel=1e-12)
        rejected = lender.predict("credit", ("1001", "stranger"), False, None)[1]
        assert (rejected["status"], rejected["value"]) == ("unknown", None)


def test_a_table_that_loses_a_row_in_the_middle_of_a_request(trained, monkeypatch):
    """The row was said to be known: a score marked ok is never made with training means."""
    lender, table = trained["lender"], Path(trained["bank"].home.folder, "people.csv")
    before = lender.predict("credit", IDS, None, None)
    real = KnownRows.known

    def known(rows, ids):
        found = real(rows, ids)
        if rows.source.party == "bank":
            titles, *lines = table.read_text().splitlines(keepends=True)
            table.write_text("".join([titles, *(x for x in lines if not x.startswith(IDS))]))
        return found

    monkeypatch.setattr(KnownRows, "known", known)
    assert lender.predict("credit", IDS, True, None) == before
    assert {x["status"] for x in lender.predict("credit", IDS, True, None)} == {"degraded"}


def offer_for_scoring(root, name, people):
    """Give a party a table of people who were not in training: copies of rows of its own."""
    folder = root / name
    titles, *rows = (folder / "people.csv").read_text().splitlines()
    by_id = {row.split(",")[0]: row for row in rows}
    # Without the last column at the lender: nobody knows yet who repays.
    width = len(titles.split(",")) - (name == "lender")
    lines = [",".join(titles.split(",")[:width])]
    for new, old in people.items():
        lines.append(",".join([new, *by_id[old].split(",")[1:width]]))
    (folder / "new.csv").write_text("\n".join(lines) + "\n")
    file = folder / "party.toml"
    table = '[tables.new]\nsource = "new.csv"\nid = "customer"\nscores_for = ["people"]\n[policy]'
    file.write_text(file.read_text().replace("[policy]", table, 1))


def test_people_who_were_not_in_training_are_scored_within_all_limits(tmp_path):
    few = "predictions_per_day = 9\nmost_questions = 2\n"
    lay_out(tmp_path, rows=60, policy={"bank": few + RULE, "shop": RULE})
    for name in ("lender", "bank", "shop"):
        offer_for_scoring(tmp_path, name, {"n1": "1001", "n2": "1002"})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        digest = world.submit().digest
        world.done(digest)
        lender = world["lender"]
        # Two rows each time, of nine at the bank; and each person is asked about twice at most.
        scored = lender.predict("credit", ("n1", "1001"), None, None)
        assert [one["status"] for one in scored] == ["ok", "ok"]
        assert scored[0]["value"] == pytest.approx(scored[1]["value"])
        lender.predict("credit", ("n1", "n2"), None, None)
        with pytest.raises(PredictionRefused, match="the 2 times that are allowed"):
            lender.predict("credit", ("n2", "n1"), None, None)
        found = lender.answer({"command": "score", "name": "credit", "ids": ["n2", "n1", "1003"]})
        assert [one["status"] for one in found["scores"]] == ["ok", "refused", "ok"]
        assert "the 2 times that are allowed" in found["reason"]
        ids = ["1003", "1004", "1005", "1006"]
        found = lender.answer({"command": "score", "name": "credit", "ids": ids})
        assert [one["status"] for one in found["scores"]] == ["ok", "ok", "ok", "refused"]
        assert "4 rows asked for, 6 of 9 a day are used" in found["reason"]
        assert found["used_up"]
        # No job is trained on a table for scoring.
        write_job(tmp_path, settings='disclosure = "open"')
        text = (tmp_path / "lender" / "credit.toml").read_text()
        text = text.replace('[parties.bank]\ntable = "people"', '[parties.bank]\ntable = "new"')
        (tmp_path / "lender" / "credit.toml").write_text(text)
        record = world.submit()
        ended = world.wait("lender", record.digest, lambda one: one.final, "rejected")
        assert "bank offers table 'new' to be scored, and not to train on" in ended.final.words
