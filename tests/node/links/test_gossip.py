"""Gossip: every peer is told what concerns it, whatever one peer or one job is like."""

from __future__ import annotations

import msgspec
import pytest

from tests.node.alone import alone, kept, keys_of, proposal
from tests.node.services import trio
from tests.organisations import lay_out, write_job
from tests.waiting import until
from vertikal.errors import PeerStopped
from vertikal.mesh.network_links import Link
from vertikal.node.approval import proposals
from vertikal.node.approval.proposals import SignedBytes
from vertikal.node.links import gossip
from vertikal.node.links.messages import Beat, BeatAssembly, JobNews, unpack
from vertikal.node.links.standing_links import CONTROL, HEAD

pytestmark = pytest.mark.usefixtures("quick_beats")


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
    """The control messages that were put into a link, which takes no more after this."""
    keys = keys_of(root, link.peer)
    link.outbox.finish()
    parcels = [one for one in link.outbox if one[0] == CONTROL]
    return [unpack(service.me, link.peer, one[HEAD.size :], keys) for one in parcels]


def done(record):
    return JobNews(record.digest, 1, False, True, (), False, True)


@pytest.mark.slow
def test_thousands_of_finished_jobs_do_not_silence_a_party(root):
    with alone(root, "lender") as (lender, said):
        content = proposals.decode_proposal(proposal(root))
        for number in range(3000):
            lender.book.add(SignedBytes(b"%d" % number, b""), content).done = True
        links = connected(lender, "bank", "shop")
        said.clear()
        lender.beat()
        assert said == []
        for link in links.values():
            parts = sent(root, lender, link)
            assert len(parts) > 1
            assembly = BeatAssembly()
            whole = [assembly.add("lender", part) for part in parts][-1]
            assert len({one.digest for one in whole.jobs}) == 3000
            # The peer answers in kind, and hears no more of them from then on.
            answer = Beat("1", 0.0, tuple(map(done, lender.book.all())))
            lender.gossip.hear(link.peer, answer)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lender.book, "save", lambda record: None)
            assert not any(map(lender.gossip.is_alive, lender.book.all()))


def test_a_job_that_all_have_done_stays_settled_after_a_restart(root):
    with alone(root) as (bank, _):
        record = kept(bank, proposal(root))
        record.done = True
        bank.gossip.hear("lender", Beat("1", 0.0, (done(record),)))
        assert bank.gossip.is_alive(record)
        bank.gossip.hear("shop", Beat("1", 0.0, (done(record),)))
        assert not bank.gossip.is_alive(record)
    with alone(root) as (bank, _):
        (link,) = connected(bank, "lender").values()
        bank.beat()
        assert [beat.jobs for beat in sent(root, bank, link)] == [()]


def test_a_beat_that_fails_for_one_peer_reaches_the_others(root, monkeypatch):
    with alone(root, "lender") as (lender, said):
        links = connected(lender, "bank", "shop")
        said.clear()
        real = gossip.pack

        def odd(sender, receiver, message, keys):
            if receiver == "bank":
                raise ValueError("odd")
            return real(sender, receiver, message, keys)

        monkeypatch.setattr(gossip, "pack", odd)
        lender.beat()
        assert sent(root, lender, links["bank"]) == []
        assert len(sent(root, lender, links["shop"])) == 1
        assert said == ["a beat to bank failed: ValueError: odd"]


def test_a_party_that_has_left_is_missing(root):
    for name in ("lender", "bank"):
        path = root / name / "federation.toml"
        entries = path.read_text().split("[[")
        path.write_text("[[".join(one for one in entries if 'name = "shop"' not in one))
    with alone(root) as (bank, _):
        record = kept(bank, proposal(root))
        assert "shop is not in the federation file any more" in bank.gossip.missing(record)


def test_no_run_begins_with_another_protocol_and_it_does_with_the_same(world, monkeypatch):
    shop = world["shop"].gossip
    tell = shop.tell

    def old(name, message):
        if isinstance(message, Beat):
            message = msgspec.structs.replace(message, version="0.0.9", oldest=0, newest=0)
        tell(name, message)

    monkeypatch.setattr(shop, "tell", old)
    lender = world["lender"].gossip
    until(lambda: lender.beats["shop"].beat.version == "0.0.9", "an old beat")
    digest = world.submit().digest
    record = world.wait("lender", digest, lambda one: one.approved_by_all, "approved")
    state = world["lender"].answer({"command": "list"})[0]["state"]
    assert "shop runs vertikal 0.0.9 (protocol 0), lender runs" in state
    assert "(protocol 1): install the same release, or one next to it" in state
    seen = lender.beats["shop"].beat.time
    until(lambda: lender.beats["shop"].beat.time > seen + 1.0, "some beats")
    assert record.attempt == 0
    monkeypatch.setattr(shop, "tell", tell)
    world.done(digest)


def test_releases_that_share_a_protocol_run_together(world, monkeypatch):
    """The shop has the next release, which speaks the next protocol and this one, and says more."""
    shop = world["shop"].gossip
    tell = shop.tell

    class LaterBeat(Beat, tag="Beat"):
        mood: str = "well"

    def later(name, message):
        if isinstance(message, Beat):
            given = msgspec.structs.asdict(message)
            message = LaterBeat(**{**given, "version": "0.2.0", "newest": 2})
        tell(name, message)

    monkeypatch.setattr(shop, "tell", later)
    lender = world["lender"].gossip
    until(lambda: lender.beats["shop"].beat.version == "0.2.0", "a later beat")
    (peer,) = [one for one in world["lender"].answer({"command": "peers"}) if one["name"] == "shop"]
    assert (peer["version"], peer["faults"]) == ("0.2.0", [])
    digest = world.submit().digest
    world.done(digest)
    assert world.record("shop", digest).protocol == 1


def test_three_that_fit_two_by_two_do_not_run(root):
    with alone(root, "lender") as (lender, _):
        links = connected(lender, "bank", "shop")
        assert len(links) == 2
        record = kept(lender, proposal(root))
        lender.gossip.hear("bank", Beat("0.0.9", 0.0, oldest=0, newest=1))
        lender.gossip.hear("shop", Beat("0.2.0", 0.0, oldest=1, newest=2))
        assert lender.gossip.missing(record) == []
        assert lender.gossip.protocol(record) == 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gossip, "OWN", (0, 2))
            lender.gossip.hear("bank", Beat("0.0.9", 0.0, oldest=0, newest=0))
            (why,) = lender.gossip.missing(record)
            assert "bank speaks protocol 0, shop speaks protocols 1 to 2" in why
            with pytest.raises(PeerStopped, match="no protocol is common"):
                lender.gossip.protocol(record)


def test_who_submits_by_a_clock_that_is_ahead_is_told(tmp_path, monkeypatch):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        bank, lender = world["bank"].gossip, world["lender"]
        tell = bank.tell

        def late(name, message):
            if isinstance(message, Beat):
                message = msgspec.structs.replace(message, time=message.time - 4000)
            tell(name, message)

        monkeypatch.setattr(bank, "tell", late)
        until(lambda: lender.gossip.beats["bank"].clock_lead < -3000, "a late beat")
        world.submit()
        state = lender.answer({"command": "list"})[0]["state"]
        assert state.startswith("waits for the approval of bank, shop; the clock of lender is 4000")
        assert "ahead of that of bank, which refuses it; set them right, cancel this job" in state
