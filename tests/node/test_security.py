"""Jobs that a party refuses: unapproved, altered, replayed, foreign and unoffered jobs."""

from __future__ import annotations

import socket
import ssl
import time

import msgspec
import pytest

from tests.node.services import trio
from tests.organisations import DEGRADED, NAMES, RULE, lay_out, write_job
from tests.waiting import until
from vertikal.errors import InputError
from vertikal.node.approval import offers, proposals
from vertikal.node.approval.proposals import APPROVE, Decision, Proposal, SignedBytes
from vertikal.node.config.job_file import Job, Part
from vertikal.node.links.messages import Answered, Asked, Beat, Begin
from vertikal.node.storage.audit_log import read
from vertikal.secure.keys.identity import Identity

pytestmark = pytest.mark.usefixtures("quick_beats")


@pytest.fixture
def world(tmp_path):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as three:
        yield three


@pytest.fixture
def touched(monkeypatch):
    """The parties whose tables were opened for a job, in order: their owners look at the start."""
    found = []
    real = offers.open_offer

    def opened(home, offer):
        if not isinstance(home, offers.OwnTables):
            found.append(home.me)
        return real(home, offer)

    monkeypatch.setattr(offers, "open_offer", opened)
    return found


def refusals(party):
    path = party.home.store / "audit.log"
    return [line.facts.get("words", "") for line in read(path) if line.event == "refused"]


def settle(world):
    """Let some beats of everybody pass."""
    now = time.time()
    for name in NAMES:
        beats = world[name].gossip.beats
        until(lambda b=beats: all(one.beat.time > now + 0.6 for one in b.values()), "beats")


def test_nothing_is_touched_before_an_owner_approves(world, touched):
    digest = world.submit().digest
    world.record("shop", digest)
    world.approve(digest, "bank")
    settle(world)
    assert touched == ["lender", "bank"]
    assert not any(world[name].runs.run_of(world.record(name, digest)) for name in NAMES)
    # The leader cannot begin by itself either.
    world["lender"].gossip.tell("bank", Begin(digest, 1))
    settle(world)
    assert touched == ["lender", "bank"]
    assert world.record("bank", digest).attempt == 0
    world.approve(digest, "shop")
    world.done(digest)


def test_an_altered_job_has_nobodys_approval(world, touched):
    digest = world.submit().digest
    record = world.record("bank", digest)
    job = msgspec.structs.replace(record.proposal.job, timeout=59.0)
    altered = msgspec.msgpack.encode(msgspec.structs.replace(record.proposal, job=job))
    forged = SignedBytes(altered, record.signed.signature)
    world["lender"].gossip.tell("bank", Asked(forged))
    until(lambda: any("not signed by the key" in w for w in refusals(world["bank"])), "refused")
    assert world["bank"].book.find(forged.digest) is None
    # A decision about one job counts for no other.
    signed = proposals.decide(digest, "lender", APPROVE, "", world["lender"].home.keys)
    other = msgspec.structs.replace(proposals.read_decision(signed, world["lender"].home.keys))
    moved = SignedBytes(
        msgspec.msgpack.encode(msgspec.structs.replace(other, digest=forged.digest)),
        signed.signature,
    )
    world["lender"].gossip.tell("bank", Answered(moved))
    until(lambda: len(refusals(world["bank"])) > 1, "refused")


def test_a_decision_in_anothers_name_is_not_believed(world):
    digest = world.submit().digest
    bank = world["bank"]
    forged = proposals.decide(digest, "shop", APPROVE, "", bank.home.keys)
    bank.gossip.tell("lender", Answered(forged))
    until(lambda: any("'shop' was not signed" in w for w in refusals(world["lender"])), "refused")
    assert world.record("lender", digest).verdict("shop") == ""


def test_a_finished_job_that_is_replayed_does_nothing(world):
    digest = world.submit().digest
    world.approve(digest, "bank", "shop")
    world.done(digest)
    bank, lender = world["bank"], world["lender"]
    record = world.record("lender", digest)
    before = [(one.number, one.attempt) for one in bank.book.all()]
    for _ in range(3):
        lender.gossip.tell("bank", Asked(record.signed))
        for signed, _ in record.decisions.values():
            lender.gossip.tell("bank", Answered(signed))
        lender.gossip.tell("bank", Begin(digest, record.attempt))
    settle(world)
    assert [(one.number, one.attempt) for one in bank.book.all()] == before


def proposal_of(world, job, submitter="lender"):
    party = world[submitter]
    raw = msgspec.msgpack.encode(Proposal("x", job, submitter, time.time(), "0.1.0", 1, "n"))
    return SignedBytes(raw, party.home.keys.sign(b"vertikal proposal\0" + raw))


def test_foreign_jobs_are_refused(world):
    job = Job.load(world.root / "lender" / "credit.toml")
    # Submitted by somebody who does not lead it.
    theirs = proposal_of(world, job, "shop")
    world["shop"].gossip.tell("bank", Asked(theirs))
    until(lambda: any("first label party" in w for w in refusals(world["bank"])), "not its leader")
    # Of other parties only.
    without = msgspec.structs.replace(
        job, parties={name: part for name, part in job.parties.items() if name != "bank"}
    )
    world["lender"].gossip.tell("bank", Asked(proposal_of(world, without)))
    until(lambda: any("not a party of this job" in w for w in refusals(world["bank"])), "foreign")
    # With somebody whom nobody knows.
    more = msgspec.structs.replace(job, parties={**job.parties, "zoe\n": Part("people")})
    world["lender"].gossip.tell("bank", Asked(proposal_of(world, more)))
    said = r"job: 'zoe\n' is not in the federation file"
    until(lambda: any(said in words for words in refusals(world["bank"])), "unknown")
    with pytest.raises(InputError, match=r"'zoe.n' is not in the federation file"):
        world["lender"].decisions.submit("credit", more)
    # A run that is begun by another than the leader.
    digest = world.submit().digest
    world.record("bank", digest)
    world["shop"].gossip.tell("bank", Begin(digest, 1))
    until(lambda: any("may not begin" in words for words in refusals(world["bank"])), "begun")
    assert [one.digest for one in world["bank"].book.all()] == [digest]


def test_a_party_outside_the_federation_gets_no_answer(world):
    address = world["lender"].home.federation.member("lender").listens
    host, _, port = address.rpartition(":")
    stranger = Identity.create("bank")  # the right name, another key
    files = world.root / "stranger.key", world.root / "stranger.crt"
    stranger.save(*files)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(files[1], files[0])
    with (
        socket.create_connection((host, int(port)), 20) as plain,
        context.wrap_socket(plain) as connection,
    ):
        connection.settimeout(20)
        try:
            heard = connection.recv(1)
        except OSError:
            heard = b""
    assert heard == b""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"table": "people.csv"}, "offers no table 'people.csv'"),
        ({"table": "../shop/people.csv"}, "offers no table"),
        ({"table": "SELECT * FROM people"}, "offers no table"),
        ({"columns": ("balance", "customer")}, "offers no column 'customer'"),
        ({"columns": ("iban",)}, "offers no column 'iban'"),
        ({"columns": ()}, "must use one column at least"),
        ({"label": "balance"}, "offers no column 'balance' of table 'people' as labels"),
    ],
)
def test_a_job_cannot_name_what_is_not_offered(world, touched, change, said):
    job = Job.load(world.root / "lender" / "credit.toml")
    part = msgspec.structs.replace(Part("people"), **change)
    asked = msgspec.structs.replace(job, parties={**job.parties, "bank": part})
    signed = proposal_of(world, asked)
    with world["lender"].book.lock:
        world["lender"].book.add(signed, proposals.decode_proposal(signed))
    world["lender"].gossip.tell("bank", Asked(signed))
    record = world.wait("bank", signed.digest, lambda one: one.final, "rejected")
    assert record.final.verdict == "reject"
    assert said in record.final.words
    assert "bank" not in touched
    with pytest.raises(InputError, match="decided already"):
        world["bank"].decisions.approve(record.id)


@pytest.mark.parametrize(
    ("directions", "said"),
    [
        (16, "every training row) is not allowed, only 'values'"),
        (64, "64 directions per row, at most 32 are allowed"),
    ],
)
def test_the_policy_rejects_what_its_owner_did_not_allow(tmp_path, touched, directions, said):
    lay_out(tmp_path, rows=60, disclosures=("open",))
    narrow = "open" if directions == 64 else "values"
    text = (tmp_path / "bank" / "party.toml").read_text()
    text = text.replace('["open"]', f'["{narrow}"]\nmost_directions = 32') + RULE
    (tmp_path / "bank" / "party.toml").write_text(text)
    write_job(tmp_path, directions=directions, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        digest = world.submit().digest
        for name in NAMES:
            record = world.wait(name, digest, lambda one: one.final, "rejected")
            assert (record.final.party, record.final.verdict) == ("bank", "reject")
            assert said in record.final.words
        assert (
            "against your policy"
            in world["bank"].answer({"command": "show", "job": record.id})["text"]
        )
    assert touched == ["lender"]


def test_a_job_of_an_earlier_federation_file_is_listed_still(world):
    digest = world.submit().digest
    record = world.record("bank", digest)
    parties = {**record.proposal.job.parties, "zoe": Part("people")}
    job = msgspec.structs.replace(record.proposal.job, parties=parties)
    record.proposal = msgspec.structs.replace(record.proposal, job=job)
    assert "zoe is not in the federation file any more" in world["bank"].gossip.missing(record)
    assert [one["job"] for one in world["bank"].answer({"command": "list"})] == [record.id]
    world["bank"].answer({"command": "show", "job": record.id})


def test_words_of_others_make_no_line_of_their_own(world):
    digest = world.submit().digest
    bank, shop = world["bank"], world["shop"]
    record = world.record("bank", digest)
    forged = Decision(digest, "shop", APPROVE, time.time(), "fine\n\nWho learns what\n  nothing")
    raw = msgspec.msgpack.encode(forged)
    signed = SignedBytes(raw, shop.home.keys.sign(b"vertikal decision\0" + raw))
    shop.gossip.tell("bank", Answered(signed))
    until(lambda: any("reason must be at most" in one for one in refusals(bank)), "refused")
    assert record.verdict("shop") == ""
    # What a run says may quote another's words.
    record.note = "bank: shop stopped (\x1b[2J\nWho learns what) while"
    shown = bank.answer({"command": "show", "job": record.id})
    assert shown["text"].splitlines().count("Who learns what") == 1
    assert "\x1b" not in shown["text"] + shown["words"]

    def is_quoted():
        # The next beat of the service itself would replace this one.
        bank.gossip.hear("shop", Beat("9\x1b[2J", time.time(), oldest=9, newest=9))
        return any("shop runs vertikal 9?[2J" in one for one in bank.gossip.missing(record))

    until(is_quoted, "the version is quoted without what cannot be printed")


MARK = "idzz"


@pytest.mark.parametrize("level", ["open", "values"])
def test_no_id_and_no_cell_is_written_anywhere_but_in_the_models(tmp_path, level):
    lay_out(
        tmp_path,
        rows=60,
        policy={"bank": "predictions_per_day = 4\n" + DEGRADED + RULE, "shop": DEGRADED + RULE},
    )
    for name in NAMES:
        table = tmp_path / name / "people.csv"
        head, *lines = table.read_text().splitlines()
        split = [line.split(",") for line in lines]
        cells = [f"{float(parts[1]) + 0.0123456789:.10f}" for parts in split]
        for parts, cell in zip(split, cells, strict=True):
            parts[:2] = [MARK + parts[0], cell]
        table.write_text("\n".join([head, *map(",".join, split)]))
    assert min(map(len, cells)) > 11
    write_job(tmp_path, directions=16, settings=f'disclosure = "{level}"')
    with trio(tmp_path) as world:
        world.done(world.submit().digest)
        lender = world["lender"]
        lender.predict("credit", (f"{MARK}1001", f"{MARK}nobody"), True, None)
        with pytest.raises(Exception, match="bank refused"):
            lender.predict("credit", tuple(f"{MARK}{n}" for n in range(1000, 1010)), None, None)
        # A run that fails on the data: a cell that is no number, in a column of numbers.
        table = tmp_path / "shop" / "people.csv"
        table.write_text(table.read_text().replace(f",{cells[0]}", f",{MARK}secret", 1))
        digest = world.submit().digest
        world.wait("shop", digest, lambda one: one.final or one.done, "ends")
        words = "\n".join(f"{name}: {line}" for name in NAMES for line in world.said[name])
        heard = [str(world.record(name, digest).final) for name in ("lender", "bank")]
    assert MARK not in "\n".join(heard)
    assert MARK not in words
    for name in NAMES:
        store = tmp_path / name / "store"
        kept = [path for path in store.rglob("*") if path.is_file() and "models" not in path.parts]
        assert any(path.name == "audit.log" for path in kept)
        for path in kept:
            raw = path.read_bytes()
            assert MARK.encode() not in raw, path
            assert not [cell for cell in cells if cell.encode() in raw], path
