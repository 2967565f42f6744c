"""Keys renewed and members removed while services run, each change told by its signatures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.node.alone import alone, kept, keys_of, proposal
from tests.node.services import trio
from tests.organisations import RULE, WITH_NOTARY, lay_out, write_job
from tests.waiting import until
from vertikal.errors import CertificateExpired, CertificateMismatch, DiskFull, InputError
from vertikal.node.approval import proposals
from vertikal.node.approval.proposals import APPROVE
from vertikal.node.config.federation_changes import remove, rotate
from vertikal.node.config.federation_file import FederationFile, render
from vertikal.node.links.messages import Changed, Probe, pack, unpack
from vertikal.node.service import Service
from vertikal.node.storage import party_home
from vertikal.node.storage.audit_log import read
from vertikal.secure.keys.identity import Identity


@pytest.fixture
def root(tmp_path, quick_beats):
    lay_out(tmp_path, rows=60, policy={"bank": RULE, "shop": RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    return tmp_path


def federation_of(root, name="bank"):
    return FederationFile.load(root / name / "federation.toml")


def identity_of(root, name):
    return Identity.load(root / name / f"{name}.key", root / name / f"{name}.crt")


def rotation(root, name="shop"):
    new = Identity.create(name)
    change = rotate(federation_of(root).root, identity_of(root, name), new.certificate)
    return change, new


def events(root, name="bank"):
    return [line.event for line in read(root / name / "store" / "audit.log")]


def linked(world):
    """Wait until all are connected again."""
    for service in world.services.values():
        until(
            lambda s=service: all(one.up for one in s.links.presence().values()),
            f"{service.me} is connected",
            world.told,
        )


def test_keys_are_renewed_while_services_run(root):
    with trio(root) as world:
        world.done(world.submit().digest)
        for name in ("bank", "lender"):
            before = federation_of(root, name).member(name).fingerprint
            told = world[name].answer({"command": "rotate", "days": 90, "anyway": False})
            assert told != before
            for other in world.services.values():
                until(
                    lambda o=other, n=name, t=told: o.home.federation.member(n).fingerprint == t,
                    f"{other.me} pins the new key of {name}",
                    world.told,
                )
            assert identity_of(root, name).certificate.fingerprint == told
            linked(world)
        for service in world.services.values():
            assert service.home.federation.serial == 2
            assert FederationFile.load(root / service.me / "federation.toml").serial == 2
        world.done(world.submit().digest)
        assert len(world["lender"].predict("credit", ("1000",), None, None)) == 1
    changed = [line for line in read(root / "shop" / "store" / "audit.log")]
    words = [line.facts["words"] for line in changed if line.event == "federation changed"]
    assert [one.split()[0] for one in words] == ["bank", "lender"]
    # Started again, they know the keys from their files.
    with trio(root) as world:
        assert world["shop"].home.federation.serial == 2


def test_a_member_is_removed_by_all_who_remain_while_a_job_waits(root):
    root = root / "more"
    lay_out(root, rows=60, policy={"bank": RULE}, names=WITH_NOTARY)
    write_job(root, directions=16, settings='disclosure = "open"')
    with trio(root, WITH_NOTARY) as world:
        digest = world.submit().digest
        summary = world["lender"].answer({"command": "remove", "names": ["shop"]})
        (change,) = summary["changes"]
        assert change["state"] == "proposed"
        for name in ("bank", "notary"):
            service = world[name]
            until(lambda s=service: s.home.federation.history.pending, "proposed", world.told)
            assert "shop" in service.home.federation.names
            service.answer({"command": "accept", "digest": change["digest"][:12]})
        for name in ("lender", "bank", "notary"):
            service = world[name]
            until(lambda s=service: "shop" not in s.home.federation.names, "gone", world.told)
        for name in ("lender", "bank"):
            record = world.record(name, digest)
            until(lambda r=record: r.final is not None, "stopped", world.told)
            assert "shop was removed from the federation by bank, lender" in record.final.words
        until(
            lambda: any("this party was removed" in line for line in world.said["shop"]),
            "shop is told",
            world.told,
        )
        until(lambda: not world["shop"].links.is_up("lender"), "its link ends", world.told)
        with pytest.raises(InputError, match="'shop' is not in the federation file"):
            world.submit()
        assert "removed from the federation" in events(root, "shop")


def test_records_stay_readable_and_open_decisions_are_signed_anew(root):
    with alone(root) as (service, _):
        record = kept(service, proposal(root))
        service.decisions.approve(record.id)
        signed = proposals.decide(record.digest, "shop", APPROVE, "", keys_of(root, "shop"))
        service.decisions.take_decision("shop", signed)
        old = record.decisions["bank"][0]
        service.membership.rotate(90, True)
        assert record.decisions["bank"][0].signature != old.signature
        assert record.decisions["bank"][0].digest == old.digest
        proposals.read_decision(record.decisions["bank"][0], service.home.keys)
        change, _ = rotation(root)
        service.membership.take([change])
        # What the shop's old key signed counts where it was taken in before, and is refused now.
        with pytest.raises(CertificateMismatch):
            proposals.read_decision(signed, service.home.keys)
        assert proposals.read_decision(signed, service.home.keys, kept=True).party == "shop"
    with alone(root) as (service, said):
        (record,) = service.book.all()
        assert {name: one[1].verdict for name, one in record.decisions.items()} == {
            "bank": APPROVE,
            "shop": APPROVE,
        }
        assert not any("does not count" in line for line in said)


def test_a_late_decision_by_the_old_key_is_refused_once_and_by_the_new_one_taken(root):
    with alone(root) as (service, _):
        record = kept(service, proposal(root))
        old = proposals.decide(record.digest, "shop", APPROVE, "", keys_of(root, "shop"))
        change, new = rotation(root)
        service.membership.take([change])
        for _ in range(3):
            service.decisions.take_decision("lender", old)
        assert record.verdict("shop") == ""
        again = proposals.sign_decision_again(old, service.home.federation.credentials(new))
        service.decisions.take_decision("lender", again)
        assert record.verdict("shop") == APPROVE
    assert events(root).count("refused") == 1


def test_what_was_refused_is_looked_at_again_after_a_change(root):
    """A proposal by a new key may come before that key does."""
    change, new = rotation(root, "lender")
    file = federation_of(root).with_change(change)
    signed = proposals.sign_proposal_again(proposal(root), file.credentials(new))
    with alone(root) as (service, _):
        service.decisions.take_proposal("shop", signed)
        assert service.book.all() == []
        service.membership.take([change])
        service.decisions.take_proposal("shop", signed)
        assert len(service.book.all()) == 1


def test_changes_are_heard_of_a_party_whose_new_key_they_bring(root):
    change, new = rotation(root)
    file = federation_of(root).with_change(change)
    keys, mine = file.credentials(new), keys_of(root, "bank")
    assert unpack("shop", "bank", pack("shop", "bank", Changed((change,)), keys), mine) == Changed(
        (change,)
    )
    with pytest.raises(CertificateMismatch):
        unpack("shop", "bank", pack("shop", "bank", Probe(1), keys), mine)


def test_two_new_keys_of_one_party_are_noted(root):
    first, _ = rotation(root)
    second, _ = rotation(root)
    with alone(root) as (service, said):
        service.membership.take([first, second, second])
        assert service.home.federation.serial == 1
        assert any("two new keys of shop are signed by its old key" in line for line in said)
    assert events(root).count("key conflict") == 1


def test_a_comparison_does_not_outlive_a_key(root):
    with alone(root) as (service, _):
        for name in ("lender", "shop"):
            service.home.compared.mark(service.home.federation, name)
        change, _ = rotation(root)
        service.membership.take([change])
        assert service.home.not_compared() == ["shop"]


def test_what_an_owner_may_not_do(root):
    with alone(root) as (service, _):
        for request, said in (
            ({"command": "rotate", "days": 90, "anyway": False}, "lender, shop cannot hear of"),
            ({"command": "remove", "names": ["zoe"]}, "'zoe' is not in the federation file"),
            ({"command": "remove", "names": ["bank"]}, "NAMES must be other parties"),
            ({"command": "remove", "names": ["lender"]}, "NAMES must leave a party that listens"),
            ({"command": "remove", "names": ["lender", "shop"]}, "two parties at least remain"),
            ({"command": "accept", "digest": "00"}, "DIGEST must be that of a proposed change"),
            ({"command": "accept", "digest": ""}, "DIGEST must be that of a proposed change"),
        ):
            with pytest.raises(Exception, match=said):
                service.answer(request)
        change = remove(
            service.home.federation.root,
            service.home.federation.names,
            ("bank",),
            identity_of(root, "lender"),
        )
        service.membership.take([change])
        with pytest.raises(InputError, match="about this party itself"):
            service.answer({"command": "accept", "digest": change.digest})
        assert service.home.federation.serial == 0


def test_a_file_brought_by_hand(root, tmp_path):
    """A party that was away when another got a new key refuses it, until it has the file."""
    with alone(root, "shop") as (service, _):
        service.membership.rotate(90, True)
    with alone(root) as (service, _):
        lay_out(root / "other", rows=60)
        with pytest.raises(InputError, match="the file of another federation"):
            service.membership.update(root / "other" / "bank" / "federation.toml")
        told = service.answer({"command": "update", "file": str(root / "shop" / "federation.toml")})
        assert told["serial"] == 1
    assert federation_of(root, "bank").state == federation_of(root, "shop").state


@pytest.mark.parametrize("moved", [0, 1])
def test_a_crash_while_a_key_is_renewed(root, monkeypatch, moved):
    """Before the federation file is written the old key stays; after it the next start goes on."""
    old = identity_of(root, "bank").certificate.fingerprint
    entry = root / "bank" / "bank.toml"
    member = federation_of(root).member("bank")
    entry.write_text(render(member))

    def crash(*_):
        raise KeyboardInterrupt

    with alone(root) as (service, _), monkeypatch.context() as patched:
        if moved:
            patched.setattr(party_home, "finish_renewal", crash)
        else:
            patched.setattr(FederationFile, "save", crash)
        with pytest.raises(KeyboardInterrupt):
            service.membership.rotate(90, True)
    with alone(root) as (service, _):
        now = service.home.identity.certificate.fingerprint
        assert (now != old) == bool(moved)
        assert service.home.federation.member("bank").fingerprint == now
        if moved:
            assert now in entry.read_text()
            assert not list((root / "bank").glob("*.new"))


def test_a_key_under_a_passphrase_stays_under_it(root):
    folder = root / "bank"
    identity_of(root, "bank").save(folder / "bank.key", folder / "bank.crt", b"secret words")
    service = Service(folder / "party.toml", lambda _: None, b"secret words")
    try:
        service.membership.rotate(90, True)
    finally:
        service.stop()
    assert b"ENCRYPTED" in (folder / "bank.key").read_bytes()
    assert (folder / "bank.key").stat().st_mode & 0o777 == 0o600
    Identity.load(folder / "bank.key", folder / "bank.crt", b"secret words")


def test_an_expired_certificate_is_not_pinned(root):
    """It would keep every service from starting."""
    past = datetime.now(UTC) - timedelta(days=400)
    new = Identity.create("shop", days=100, now=past)
    change = rotate(federation_of(root).root, identity_of(root, "shop"), new.certificate)
    with alone(root) as (service, _):
        with pytest.raises(CertificateExpired, match="certificate of 'shop' expired"):
            service.membership.take([change])
        assert service.home.federation.serial == 0


def test_a_full_disk_keeps_no_link_by_an_old_key(root, monkeypatch):
    """The change itself is written; where the log has no room, links go by it all the same."""
    change, new = rotation(root)
    with alone(root) as (service, _):
        pinned = []
        monkeypatch.setattr(service.links, "adopt", lambda file, keys: pinned.append(file))
        with monkeypatch.context() as patched:
            patched.setattr(service.home.log, "record", full)
            with pytest.raises(DiskFull):
                service.membership.take([change])
        (file,) = pinned
        assert file.member("shop").fingerprint == new.certificate.fingerprint


def full(*_, **__):
    raise DiskFull("the disk of the store is full")
