"""Parties bring no more ids to an alignment than was approved, and than policies allow."""

from __future__ import annotations

import pytest

from tests.node.services import trio
from tests.organisations import NAMES, RULE, lay_out, write_job
from vertikal.node.runs import party_run
from vertikal.node.storage.audit_log import read

pytestmark = pytest.mark.usefixtures("quick_beats")


def lines(world, name, event):
    return [one for one in read(world.root / name / "store" / "audit.log") if one.event == event]


@pytest.mark.parametrize("who", NAMES)
def test_invented_ids_beyond_what_was_approved_get_no_answer(world, monkeypatch, who):
    real, fished = party_run.align, []

    def align(party, ids, **options):
        if party.name != who:
            return real(party, ids, **options)
        found = real(party, [str(number) for number in range(30_000)], **options)
        fished.append(found.matched)
        return found

    monkeypatch.setattr(party_run, "align", align)
    digest = world.submit().digest
    others = [name for name in NAMES if name != who]
    for name in others:
        record = world.wait(name, digest, lambda one: one.final or one.done, "ends")
        assert record.final is not None
        assert f"{who} brings up to 30720 ids to the alignment" in record.final.words
        for line in lines(world, name, "sent"):
            kinds = {key.partition(" to ")[0] for key in line.facts["bytes"]}
            assert not kinds & {"blinded ids", "evaluated ids", "id tables", "common ids"}
    assert fished == []


def test_the_numbers_of_ids_are_approved_and_logged(tmp_path):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        digest = world.submit().digest
        job = world.record("bank", digest).id
        shown = world["bank"].answer({"command": "show", "job": job})["text"]
        assert "lender 100 at most, shop says with its approval how many" in shown
        assert "10 for each row of your table, 10,000 at least (most_ids)" in shown
        world.approve(digest, "shop")
        world.wait("bank", digest, lambda one: one.verdict("shop"), "hears of the approval")
        # Rounded up, as the alignment would tell it.
        shown = world["bank"].answer({"command": "show", "job": job})["text"]
        assert "shop 100 at most" in shown
        world.approve(digest, "bank")
        world.done(digest)
        begun = lines(world, "bank", "alignment begins")[0].facts["words"]
        assert (
            begun == "attempt 1, 100 own rows, at most 100 ids of lender, at most 100 ids of shop"
        )


def test_a_policy_refuses_a_submitter_with_many_ids(tmp_path):
    lay_out(tmp_path, rows=60, policy={"bank": "most_ids = 99\n" + RULE, "shop": RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        record = world.wait("bank", world.submit().digest, lambda one: one.final, "is rejected")
    assert (record.final.party, record.final.verdict) == ("bank", "reject")
    assert "lender brings 100 ids to the alignment, more than most_ids allows" in record.final.words


def test_a_policy_refuses_a_later_approval_with_many_ids(tmp_path):
    """The lender approves by submitting, before it knows how many ids the others bring."""
    lay_out(tmp_path, rows=60, policy={"lender": "most_ids = 99\n", "bank": RULE, "shop": RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        record = world.wait("lender", world.submit().digest, lambda one: one.final, "is stopped")
        assert (record.final.party, record.final.verdict) == ("lender", "stop")
        assert "bank brings 100 ids to the alignment, more than most_ids" in record.final.words
        assert not lines(world, "lender", "alignment begins")


def test_only_rows_that_a_filter_keeps_are_brought(tmp_path):
    """The others hear of no row that it leaves out, and not what it says."""
    lay_out(tmp_path, rows=60, policy={"bank": "most_ids = 64\n" + RULE, "shop": RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    for name in ("lender", "shop"):
        file = tmp_path / name / "party.toml"
        rows = 'id = "customer"\nrows = "customer BETWEEN 1000 AND 1039"'
        file.write_text(file.read_text().replace('id = "customer"', rows))
    with trio(tmp_path) as world:
        digest = world.submit().digest
        shown = {
            name: world[name].answer({"command": "show", "job": world.record(name, digest).id})
            for name in ("lender", "bank")
        }
        assert "only of the rows where customer BETWEEN" in shown["lender"]["text"]
        assert "BETWEEN" not in shown["bank"]["text"]
        world.done(digest)
        assert {world.models(name).show("credit").facts["rows"] for name in NAMES} == {40}
        begun = lines(world, "bank", "alignment begins")[0].facts["words"]
        assert begun.endswith("100 own rows, at most 40 ids of lender, at most 64 ids of shop")
