"""The limit on what all jobs together open about a row."""

from __future__ import annotations

import msgspec
import pytest

from tests.node.services import trio
from tests.organisations import lay_out, write_job
from vertikal.errors import PeerVisibleError
from vertikal.node.approval.disclosure_limit import book, check_limit, steps
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.approval.proposals import Proposal, SignedBytes
from vertikal.node.config.job_file import Job, Part
from vertikal.node.storage.party_home import PartyHome

PARTS = {
    "lender": Part("people", "y"),
    "bank": Part("people"),
    "shop": Part("people"),
}


@pytest.fixture
def home(tmp_path):
    lay_out(tmp_path, rows=30)
    bank = PartyHome(tmp_path / "bank" / "party.toml")
    yield bank
    bank.close()


def record_of(number, disclosure="values", evaluation=None, table="people", **settings):
    job = Job(
        algorithm="fdskl",
        parties=PARTS | {"bank": Part(table)},
        settings={"disclosure": disclosure, **settings},
        evaluation=evaluation,
    )
    signed = SignedBytes(b"job %d" % number, b"")
    return JobRecord(number, signed, Proposal("m", job, "lender", 0.0, "1", 60, ""))


def test_the_same_job_again_and_again_is_stopped(home):
    """Twenty jobs of the defaults: the columns that one leaves half hidden, twenty would show."""
    ran = []
    for number in range(20):
        record = record_of(number)
        try:
            book(home, record, 30)
        except PeerVisibleError as error:
            stopped = str(error)
        else:
            ran.append(number)
            book(home, record, 30)  # a run that is taken up again
    assert ran == [0, 1, 2]
    assert stopped == (
        "policy of bank: this job may open 300 bits about each row to lender, and of the 1,000 of "
        "all jobs together (most_row_bits) 100 are left; ask for fewer max_passes, or "
        "for fewer fits in its search and folds, or let the owner of bank allow more"
    )
    assert home.account.balance("people", "lender").row_bits == 900
    fewer = {"name": "values", "max_passes": 16}
    book(home, record_of(20, fewer), 30)
    assert home.account.balance("people", "lender").row_bits == 996


def test_tables_of_one_source_share_the_limit(home):
    """Their filters may overlap, so that a row may be in all of them."""
    offer = home.file.tables["people"]
    recent = msgspec.structs.replace(offer, rows="customer > 3")
    home.file = msgspec.structs.replace(home.file, tables={"people": offer, "recent": recent})
    book(home, record_of(1), 30)
    book(home, record_of(2, table="recent"), 30)
    book(home, record_of(3), 30)
    with pytest.raises(PeerVisibleError, match="100 are left"):
        book(home, record_of(4, table="recent"), 30)


def test_the_owner_reads_by_how_much_a_job_raises_the_account(home):
    book(home, record_of(1), 30)
    record = record_of(2)
    (step,) = steps(home, record.proposal, record.digest)
    assert str(step) == (
        "this job would bring what lender knows about a row of people from 300 to 600 bits at "
        "most; your limit is 1,000 (most_row_bits)"
    )
    check_limit(home, record.proposal, record.digest)


def test_levels_that_show_all_are_booked_and_not_limited(home):
    for number in range(5):
        book(home, record_of(number, "open", bandwidth="median"), 30)
    balance = home.account.balance("people", "lender")
    assert (balance.row_bits, balance.unbounded_bits) == (0, 5 * 2048 * 8)
    assert balance.distances == 5 * 2000
    record = record_of(9, "open")
    (step,) = steps(home, record.proposal, record.digest)
    assert "shows lender up to 2,048 numbers of 8 bits about each row of people" in str(step)


def test_sealed_jobs_open_nothing_but_predictions(home):
    record = record_of(1, "sealed", loss="square")
    book(home, record, 30)
    (step,) = steps(home, record.proposal, record.digest)
    assert str(step) == "this job opens no number about a row of people to lender"
    (one,) = home.account.openings()
    assert (one.receiver, one.row_bits, one.prediction_bits) == ("lender", 0, 20)


def test_predictions_of_rows_held_out_are_counted(home):
    """A sealed job opens nothing else; three parties with tables are shuffled one by one."""
    judged = {"holdout": 0.1, "contributions": True}
    record = record_of(1, "sealed", judged, loss="square")
    book(home, record, 30)
    balance = home.account.balance("people", "lender")
    assert balance.row_bits == 3 * (1 + 3) * 20
    (step,) = steps(home, record.proposal, record.digest)
    assert "from 0 to 240 bits at most" in str(step)
    # A row is of training or held out, so that the larger of both numbers counts.
    book(home, record_of(2, "values", {"holdout": 0.1}), 30)
    assert home.account.balance("people", "lender").row_bits == 240 + 300
    # Open jobs show features of all rows, which no limit counts.
    book(home, record_of(3, "open", judged), 30)
    assert home.account.balance("people", "lender").row_bits == 240 + 300


def test_nothing_is_booked_for_what_a_party_sees_of_itself(tmp_path):
    lay_out(tmp_path, rows=30)
    lender = PartyHome(tmp_path / "lender" / "party.toml")
    try:
        book(lender, record_of(1), 30)
        assert lender.account.openings() == []
    finally:
        lender.close()


def test_services_book_before_they_train_and_refuse_what_is_too_much(tmp_path):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=200, settings='disclosure = "values"')
    for name in ("bank", "shop"):
        file = tmp_path / name / "party.toml"
        file.write_text(file.read_text().replace("[policy]", "[policy]\nmost_row_bits = 500"))
    with trio(tmp_path) as world:
        first = world.submit().digest
        job = world.record("bank", first).id
        shown = world["bank"].answer({"command": "show", "job": job})["text"]
        assert "account: this job would bring what lender knows about a row of people" in shown
        world.approve(first, "bank", "shop")
        world.done(first)
        for name in ("bank", "shop"):
            (one,) = world[name].home.account.openings()
            assert (one.job, one.receiver, one.row_bits) == (first, "lender", 300)
            assert one.rows <= 60
        assert world["lender"].home.account.openings() == []
        second = world.submit().digest
        ended = world.wait("lender", second, lambda record: record.final, "refused")
        assert "(most_row_bits) 200 are left" in ended.final.words
        assert [one.job for one in world["bank"].home.account.openings()] == [first]
