"""Changes of a federation: which hold, whoever sends them and in whatever order."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from tests.conformance.networks import identity
from vertikal.errors import InputError, PartyUnknown
from vertikal.node.config import federation_changes
from vertikal.node.config.federation_changes import (
    Removal,
    Rotation,
    SignedChange,
    describe,
    remove,
    rotate,
)
from vertikal.node.config.federation_file import FederationFile, Member, entry_of, parse_members
from vertikal.secure.keys.identity import Identity

NAMES = ("lender", "bank", "shop", "clinic")


def federation(listening=("lender",)) -> FederationFile:
    members = []
    for name in NAMES:
        certificate = identity(name).certificate
        listens = "h:1" if name in listening else None
        members.append(Member(name, certificate.fingerprint, certificate.pem.decode(), listens))
    return FederationFile.of(tuple(members))


def removal(removed=("shop",), signers=("lender", "bank", "clinic"), members=NAMES):
    change = remove(federation().root, members, removed, identity(signers[0]))
    for name in signers[1:]:
        change = change.signed_by(identity(name))
    return change


def written(statement, *signers):
    change = SignedChange(msgspec.msgpack.encode(statement), {})
    for one in signers:
        change = change.signed_by(one)
    return change


def test_a_new_key_holds_if_the_old_one_signed_it():
    new = Identity.create("bank")
    before = federation()
    after = before.with_change(rotate(before.root, identity("bank"), new.certificate))
    assert after.member("bank").fingerprint == new.certificate.fingerprint
    assert after.member("shop") == before.member("shop")
    assert (before.serial, after.serial) == (0, 1)
    assert after.names == before.names
    keys = after.credentials(new)
    keys.recognise(new.certificate.pem, "bank")
    # What was signed before stays verifiable in records, and counts for nothing that comes now.
    old = identity("bank").sign(b"yes")
    keys.verify_kept("bank", b"yes", old)
    with pytest.raises(Exception, match="was not signed by the key that the federation file"):
        keys.verify("bank", b"yes", old)


def test_nobody_else_can_give_a_party_a_new_key():
    """The attack of the member that wrote the file: a key of its own in the bank's name."""
    before, false = federation(), Identity.create("bank")
    root, old = before.root, identity("bank").certificate.fingerprint
    pem = false.certificate.pem.decode()
    statement = Rotation(root, "bank", old, pem, 1.0)
    raw = written(statement).raw
    for signatures in (
        {},
        {"bank": false.sign(raw)},
        written(statement, identity("lender")).signatures,
        {"bank": written(statement, identity("lender")).signatures["lender"]},
        written(statement, false).signatures,
    ):
        assert before.with_change(SignedChange(raw, signatures)).state == before.state


def rotation(**other):
    new = other.pop("new", Identity.create("bank"))
    fields = {
        "root": federation().root,
        "party": "bank",
        "old": identity("bank").certificate.fingerprint,
        "certificate": new.certificate.pem.decode(),
        "when": 1.0,
    }
    return written(Rotation(**{**fields, **other}), identity("bank"))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda: rotation(root="another"), id="another federation"),
        pytest.param(lambda: rotation(old="sha256:00"), id="not its key"),
        pytest.param(lambda: rotation(party="shop"), id="another's"),
        pytest.param(lambda: rotation(party="zoe"), id="no member"),
        pytest.param(lambda: rotation(new=Identity.create("shop")), id="another's name"),
        pytest.param(lambda: rotation(new=identity("bank")), id="the same key"),
        pytest.param(lambda: rotation(new=Identity.create("bank", days=3)), id="soon over"),
        pytest.param(lambda: rotation(certificate="nonsense"), id="no certificate"),
        pytest.param(lambda: rotation(when=1e300), id="no date"),
        pytest.param(lambda: SignedChange(b"\xc1", {}), id="nonsense"),
        pytest.param(lambda: SignedChange(bytes(10_000), {}), id="too long"),
    ],
)
def test_rotations_that_do_not_hold(change):
    before = federation()
    assert before.with_change(change()).state == before.state


def test_an_old_key_is_not_taken_again():
    """A thief of the first key cannot bring it back, nor sign a third one."""
    first, second, third = identity("bank"), Identity.create("bank"), Identity.create("bank")
    root = federation().root
    after = federation().with_change(rotate(root, first, second.certificate))
    assert after.with_change(rotate(root, second, first.certificate)).state == after.state
    assert after.with_change(rotate(root, first, third.certificate)).state == after.state


def test_too_many_keys(monkeypatch):
    monkeypatch.setattr(federation_changes, "MAX_KEYS", 2)
    second, third = Identity.create("bank"), Identity.create("bank")
    root = federation().root
    after = federation().with_change(rotate(root, identity("bank"), second.certificate))
    assert after.serial == 1
    assert after.with_change(rotate(root, second, third.certificate)).serial == 1


def test_a_removal_holds_once_all_who_remain_have_signed():
    before = federation()
    proposed = before.with_change(removal(signers=("lender",)))
    assert proposed.names == NAMES
    assert "not signed by bank, clinic" in describe(proposed.history.pending[0])
    one_more = proposed.with_change(removal_of(proposed).signed_by(identity("bank")))
    assert one_more.names == NAMES
    # The signature of who leaves is not asked for, and a false one counts for nothing.
    forged = SignedChange(removal_of(one_more).raw, {"clinic": identity("lender").sign(b"x")})
    assert one_more.with_change(forged).state == one_more.state
    done = one_more.with_change(removal_of(one_more).signed_by(identity("clinic")))
    assert done.names == ("lender", "bank", "clinic")
    assert (done.serial, done.history.pending) == (1, ())
    with pytest.raises(PartyUnknown, match="'shop' was removed from the federation by bank, "):
        done.credentials(identity("shop"))
    done.credentials(identity("bank")).verify_kept("shop", b"x", identity("shop").sign(b"x"))


def removal_of(file):
    return file.history.pending[0]


@pytest.mark.parametrize(
    "statement",
    [
        Removal("another", tuple(sorted(NAMES)), ("shop",), "lender", 1.0),
        Removal("", ("bank", "lender", "shop"), ("shop",), "lender", 1.0),
        Removal("", tuple(sorted(NAMES)), (), "lender", 1.0),
        Removal("", tuple(sorted(NAMES)), ("shop", "shop"), "lender", 1.0),
        Removal("", tuple(sorted(NAMES)), ("zoe",), "lender", 1.0),
        Removal("", tuple(sorted(NAMES)), ("shop", "bank", "clinic"), "lender", 1.0),
        Removal("", tuple(sorted(NAMES)), ("lender",), "bank", 1.0),  # nobody would listen
        Removal("", tuple(sorted(NAMES)), ("shop",), "shop", 1.0),
        Removal("", tuple(sorted(NAMES)), ("shop",), "lender", -1.0),
    ],
)
def test_removals_that_do_not_hold(statement):
    before = federation()
    whole = msgspec.structs.replace(statement, root=statement.root or before.root)
    change = written(whole, *(identity(name) for name in NAMES))
    assert before.with_change(change).state == before.state


def test_too_few_would_remain():
    with pytest.raises(InputError, match="removal must be one after which two parties"):
        remove(federation().root, ("a", "lender"), ("a",), identity("lender"))


def test_a_new_proposal_of_the_same_party_replaces_its_old_one():
    first = removal(signers=("lender",))
    second = removal(("bank",), ("lender",))
    for order in itertools.permutations((first, second)):
        file = federation()
        for change in order:
            file = file.with_change(change)
        assert [one.digest for one in file.history.pending] == [second.digest]


def test_changes_may_come_in_any_order():
    """Rotations before and after a removal, some of them by who has signed it or leaves."""
    root = federation().root
    second, third = Identity.create("bank"), Identity.create("bank")
    changes = [
        rotate(root, identity("bank"), second.certificate),
        rotate(root, second, third.certificate),
        removal(),
        rotate(root, identity("shop"), Identity.create("shop").certificate),
    ]
    states = set()
    for order in itertools.permutations(changes):
        file = federation()
        # What rests on a change that has not come is left aside, and sent again.
        for change in order * len(order):
            file = file.with_change(change)
        states.add((file.state, file.members))
    assert len(states) == 1
    assert file.serial == 4


def test_a_file_with_changes_is_written_and_read(tmp_path):
    path = tmp_path / "federation.toml"
    text = "# ours\n" + "\n".join(
        entry_of(identity(name), "h:1" if name == "lender" else None) for name in NAMES
    )
    path.write_text(text)
    before = FederationFile.load(path)
    new = Identity.create("bank")
    after = before.with_change(rotate(before.root, identity("bank"), new.certificate))
    after = after.with_change(removal(("clinic",), ("lender", "bank")))
    for file in (after, after.with_change(removal_of(after).signed_by(identity("shop")))):
        file.save(path)
        kept = FederationFile.load(path)
        assert (kept.members, kept.state) == (file.members, file.state)
        assert path.read_text().startswith(text.rstrip("\n"))
    # An invited party is handed entries, and nothing that rests on signatures.
    with pytest.raises(InputError, match="unknown field `change`"):
        parse_members(path.read_text())
    path.write_text(path.read_text().replace('statement = "', 'statement = "!'))
    with pytest.raises(InputError, match=r"'federation\.toml': a change is damaged"):
        FederationFile.load(path)
    path.write_text(entry_of(identity("lender"), "h:1") + "\n" + entry_of(identity("bank")))
    with pytest.raises(InputError, match="has other entries than the service began with"):
        after.save(path)
