"""What a party tells the others: all of them, whatever one of them or one job is like."""

from __future__ import annotations

import pytest

from tests.node.alone import alone, kept, keys_of, proposal
from tests.organisations import lay_out, write_job
from vertikal.errors import InputError
from vertikal.mesh.network_links import Link
from vertikal.node.approval import decisions, proposals
from vertikal.node.approval.job_records import JobBook
from vertikal.node.approval.proposals import Signed
from vertikal.node.config.job_file import Job
from vertikal.node.links.heartbeats import Joining
from vertikal.node.links.messages import Asked, Beat, JobNews, pack, unpack
from vertikal.node.links.standing_links import CONTROL, HEAD, MAX_CONTROL


@pytest.fixture
def root(tmp_path):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    return tmp_path


def connected(service, *names):
    """Links that end nowhere; what was put into them can be read."""
    links = {name: Link(name, False) for name in names}
    for link in links.values():
        service.links.link_up(link)
    return links


def sent(root, service, link):
    keys = keys_of(root, link.peer)
    parcels = [one for one in link.outbox._urgent if one[0] == CONTROL]
    return [unpack(service.me, link.peer, one[HEAD.size :], keys) for one in parcels]


def done(record):
    return JobNews(record.digest, 1, False, True, (), False, True)


def test_thousands_of_finished_jobs_do_not_silence_a_party(root):
    with alone(root, "lender") as (lender, said):
        content = proposals.decode_proposal(proposal(root))
        for number in range(3000):
            lender.book.add(Signed(b"%d" % number, b""), content).done = True
        links = connected(lender, "bank", "shop")
        said.clear()
        lender.council.beat()
        assert said == []
        for link in links.values():
            parts = sent(root, lender, link)
            assert len(parts) > 1
            joining = Joining()
            whole = [joining.add("lender", part) for part in parts][-1]
            assert len({one.digest for one in whole.jobs}) == 3000
            # The peer answers in kind, and hears no more of them from then on.
            answer = Beat("1", 0.0, tuple(map(done, lender.book.all())))
            lender.council.heard(link.peer, answer)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lender.book, "save", lambda record: None)
            assert not any(map(lender.council.alive, lender.book.all()))


def test_a_job_that_all_have_done_stays_settled_after_a_restart(root):
    with alone(root) as (bank, _):
        record = kept(bank, proposal(root))
        record.done = True
        bank.council.heard("lender", Beat("1", 0.0, (done(record),)))
        assert bank.council.alive(record)
        bank.council.heard("shop", Beat("1", 0.0, (done(record),)))
        assert not bank.council.alive(record)
    with alone(root) as (bank, _):
        (link,) = connected(bank, "lender").values()
        bank.council.beat()
        assert [beat.jobs for beat in sent(root, bank, link)] == [()]


def test_a_beat_that_fails_for_one_peer_reaches_the_others(root, monkeypatch):
    with alone(root, "lender") as (lender, said):
        links = connected(lender, "bank", "shop")
        said.clear()
        real = lender.council._news_for

        def news_for(peer):
            if peer == "bank":
                raise ValueError("odd")
            return real(peer)

        monkeypatch.setattr(lender.council, "_news_for", news_for)
        lender.council.beat()
        assert sent(root, lender, links["bank"]) == []
        assert len(sent(root, lender, links["shop"])) == 1
        assert said == ["a beat to bank failed: ValueError: odd"]


def test_a_job_too_long_to_send_is_refused_when_it_is_submitted(root, monkeypatch):
    monkeypatch.setattr(decisions, "MOST_JOB", 100)
    with alone(root, "lender") as (lender, _):
        job = Job.load(root / "lender" / "credit.toml")
        with pytest.raises(InputError, match=r"^job: it would take \d+ bytes to send, at most 100"):
            lender.council.submit("credit", job)
        assert lender.book.all() == []


def test_the_longest_job_fits_into_a_message(root):
    keys = keys_of(root, "lender")
    signed = Signed(bytes(decisions.MOST_JOB), keys.sign(b""))
    assert len(pack("x" * 64, "y" * 64, Asked(signed), keys)) <= MAX_CONTROL


def test_what_is_settled_is_on_disk(root):
    with alone(root) as (bank, _):
        record = kept(bank, proposal(root))
        record.done = record.settled = True
        bank.book.save(record)
        assert JobBook(bank.home.store / "jobs", bank.home.keys).numbered(1).settled


def test_a_party_that_has_left_is_missing(root):
    for name in ("lender", "bank"):
        path = root / name / "federation.toml"
        entries = path.read_text().split("[[")
        path.write_text("[[".join(one for one in entries if 'name = "shop"' not in one))
    with alone(root) as (bank, _):
        record = kept(bank, proposal(root))
        assert "shop is not in the federation file any more" in bank.council.missing(record)
