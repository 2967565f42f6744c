"""Backups: whole or refused, and no count goes back by a restore."""

from __future__ import annotations

import io
import json
import shutil
import stat
import tarfile

import pytest
from click.testing import CliRunner

from tests.node.alone import alone, kept, proposal
from tests.node.services import trio
from tests.organisations import NAMES, RULE, lay_out, write_job
from tests.waiting import until
from vertikal.cli import main
from vertikal.errors import InputError, PeerVisibleError
from vertikal.node import service
from vertikal.node.backup.archive import read_backup, write_backup
from vertikal.node.backup.restoring import NOTHING, Since, restore, restore_models
from vertikal.node.config.party_file import PartyFile
from vertikal.node.predictions.daily_limit import DailyLimit
from vertikal.node.storage.audit_log import read, verify
from vertikal.node.storage.disclosure_account import DisclosureAccount
from vertikal.node.storage.question_count import QuestionCount
from vertikal.privacy.budget import BudgetFile
from vertikal.secure.keys import encrypted_stream

PRIVACY = "[policy.privacy]\nepsilon = 2.0\ndelta = 1e-5\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Three organisations with a model, whose services have stopped; a backup made beside them."""
    root = tmp_path_factory.mktemp("backup")
    lay_out(root, rows=60, policy={"bank": PRIVACY + RULE, "shop": RULE})
    write_job(root, directions=16, settings='disclosure = "open"')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "BEAT", 0.2)
        with trio(root) as world:
            world.done(world.submit().digest)
            write_backup(root / "bank" / "party.toml", root / "bank.backup", None)
    return root


@pytest.fixture
def place(trained, tmp_path):
    """A new machine for the bank, with its table."""
    folder = tmp_path / "bank"
    folder.mkdir()
    shutil.copy(trained / "bank" / "people.csv", folder)
    return folder


def restored(trained, place, since=None):
    _, party = restore(trained / "bank.backup", place, None, since or Since())
    return party, PartyFile.load(party)


def test_a_party_comes_back_whole(trained, place):
    party, file = restored(trained, place, NOTHING)
    assert party == place / "party.toml"
    before = trained / "bank"
    for name in ("party.toml", "bank.key", "bank.crt", "federation.toml"):
        assert (place / name).read_bytes() == (before / name).read_bytes()
    store = place / file.store
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    shards = [one.relative_to(store) for one in (store / "models").rglob("*") if one.is_file()]
    assert shards
    for one in shards:
        assert (store / one).read_bytes() == (before / "store" / one).read_bytes()
        assert stat.S_IMODE((store / one).stat().st_mode) == 0o600
    verify(store / "audit.log")
    assert not (store / "checkpoints").exists()
    assert not list(place.glob(".restoring-*"))
    with alone(place.parent) as (bank, _):
        assert [one.done for one in bank.book.all()] == [True]


def test_no_count_goes_back(trained, place):
    _, file = restored(trained, place)
    store, policy = place / "store", file.policy
    account = DisclosureAccount(store, "bank")
    assert account.balance("people", "lender").row_bits == policy.most_row_bits
    assert account.balance("people", "shop").row_bits == policy.most_row_bits
    (model,) = (store / "models").glob("*/*/manifest.json")
    job = json.loads(model.read_text())["facts"]["job"]
    questions = QuestionCount(store / "questions", policy.most_questions)
    assert questions.asked(job, [b"1001"]) == [policy.most_questions]
    assert questions.most_asked(job) == policy.most_questions
    with pytest.raises(PeerVisibleError, match="asked about more often"):
        questions.book(job, {0: b"1001"})
    questions.book("a model that is trained later", {0: b"1001"})
    with pytest.raises(PeerVisibleError, match="ask again tomorrow"):
        DailyLimit(store / "predictions", policy.predictions_per_day).spend(1)
    budget = BudgetFile(store / "budget.json")
    assert budget.spent == pytest.approx(2.0)
    line = [one for one in read(store / "audit.log") if one.event == "restored"][-1]
    assert line.facts["row_bits"] == policy.most_row_bits
    # An owner who raises the limit allows what is above the worst, and no more.
    more = QuestionCount(store / "questions", policy.most_questions + 1)
    more.book(job, {0: b"1001"})
    with pytest.raises(PeerVisibleError):
        more.book(job, {0: b"1001"})
    with trio(place.parent, ("bank",)) as world:
        assert any("shows what is assumed" in one for one in world.said["bank"])


def test_the_owner_may_know_better(trained, place):
    restored(trained, place, Since(row_bits=300, questions=3, privacy=False, today=False))
    store = place / "store"
    assert DisclosureAccount(store, "bank").balance("people", "lender").row_bits == 300
    assert BudgetFile(store / "budget.json").entries == ()
    DailyLimit(store / "predictions", 10).spend(1)
    line = [one for one in read(store / "audit.log") if one.event == "restored"][-1]
    assert (line.facts["row_bits"], line.facts["questions"]) == (300, 3)


def test_what_is_there_is_never_written_over(trained, place):
    restored(trained, place)
    with pytest.raises(InputError, match="is there already"):
        restore(trained / "bank.backup", place, None, NOTHING)
    shutil.rmtree(place / "store")
    with pytest.raises(InputError, match=r"'bank\.key' is there already"):
        restore(trained / "bank.backup", place, None, NOTHING)
    assert not (place / "store").exists()


def test_jobs_that_were_open_are_ended(tmp_path):
    lay_out(tmp_path, rows=60)
    with alone(tmp_path) as (bank, _):
        digest = kept(bank, proposal(tmp_path)).digest
        write_backup(tmp_path / "bank" / "party.toml", tmp_path / "b", None)
    (tmp_path / "bank").rename(tmp_path / "gone")
    restore(tmp_path / "b", tmp_path / "bank", None, NOTHING)
    shutil.copy(tmp_path / "gone" / "people.csv", tmp_path / "bank")
    with trio(tmp_path, ("bank",)) as world:
        record = world.record("bank", digest)
        assert record.final.party == "bank"
        assert "bank was restored from a backup of 20" in record.final.words
        assert any("nothing happened since" in one for one in world.said["bank"])
    with alone(tmp_path) as (bank, said):
        assert not any("restored" in one for one in said)


def test_a_shard_comes_back_by_itself_and_no_count_with_it(trained, tmp_path, quick_beats):
    root = tmp_path / "again"
    shutil.copytree(trained, root, ignore=shutil.ignore_patterns("control.sock"))
    bank, backup = root / "bank", root / "bank.backup"
    assert restore_models(backup, bank / "party.toml", None) == []
    questions = QuestionCount(bank / "store" / "questions", 32)
    questions.book("m", {0: b"1001"})
    shutil.rmtree(bank / "store" / "models" / "credit")
    assert restore_models(backup, bank / "party.toml", None) == ["credit, version 1"]
    assert QuestionCount(bank / "store" / "questions", 32).asked("m", [b"1001"]) == [1]
    assert [one.event for one in read(bank / "store" / "audit.log")][-1] == "models restored"
    with pytest.raises(InputError, match="backup must be one of 'shop'"):
        restore_models(backup, root / "shop" / "party.toml", None)
    with trio(root, NAMES) as world:
        lender = world["lender"]
        until(lambda: not lender.gossip.missing(lender.book.all()[0]), "all are there", world.told)
        (score,) = lender.predict("credit", ("1001",), None, None)
        assert score["status"] == "ok"


def entries(path):
    with tarfile.open(path) as archive:
        return [(one.name, archive.extractfile(one).read()) for one in archive]


def packed(path, found):
    with tarfile.open(path, "w") as archive:
        for name, raw in found:
            entry = tarfile.TarInfo(name)
            entry.size = len(raw)
            archive.addfile(entry, io.BytesIO(raw))
    return path


def test_a_backup_that_was_changed_is_refused(trained, tmp_path):
    good = entries(trained / "bank.backup")
    names = [name for name, _ in good]
    assert names[0] == "backup.json"
    assert names[-1] == "digests.json"
    assert names.index("store/audit.log.head") < names.index("store/audit.log")
    assert not any("checkpoints" in name or "lock" in name or "csv" in name for name in names)
    head = json.loads(good[0][1])
    later = json.dumps({**head, "format": 2, "mood": 1}).encode()
    for number, (found, why) in enumerate(
        [
            (good[:-1], "ends too early"),
            ([*good[:3], *good[4:]], "not those written"),
            ([good[0], (good[1][0], good[1][1] + b"#"), *good[2:]], "not those written"),
            ([good[0], ("store/../../evil", b"x"), *good[1:]], "no backup has"),
            ([good[0], ("/evil", b"x"), *good[1:]], "no backup has"),
            ([good[0], ("evil", b"x"), *good[1:]], "no backup has"),
            ([*good, ("store/x", b"x")], "after the last one"),
            ([(good[0][0], later), *good[1:]], "has format 2, this release reads"),
            (good[1:], "no backup of a party"),
            ([], "ends too early"),
        ]
    ):
        into = tmp_path / f"into{number}"
        into.mkdir(mode=0o700)
        with pytest.raises(InputError, match=why):
            read_backup(packed(tmp_path / f"{number}.tar", found), into, None)
    assert not (tmp_path / "evil").exists()
    with pytest.raises(InputError, match="it is no file that `vertikal party backup` wrote"):
        read_backup(trained / "bank" / "people.csv", tmp_path / "into0", None)
    link = tmp_path / "link.tar"
    with tarfile.open(link, "w") as archive:
        raw = good[0][1]
        entry = tarfile.TarInfo("backup.json")
        entry.size = len(raw)
        archive.addfile(entry, io.BytesIO(raw))
        entry = tarfile.TarInfo("store/x")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(entry)
    into = tmp_path / "link"
    into.mkdir(mode=0o700)
    with pytest.raises(InputError, match="no file"):
        read_backup(link, into, None)


def run(*words, code=0, **env):
    done = CliRunner().invoke(main, ["party", *map(str, words)], env=env)
    assert done.exit_code == code, done.output
    return done.output


def test_the_commands(trained, place, tmp_path, monkeypatch):
    monkeypatch.setattr(encrypted_stream, "COST", 2)
    party, out = trained / "bank" / "party.toml", tmp_path / "bank.vk"
    secret = {"VERTIKAL_BACKUP_PASSPHRASE": "sesame"}
    assert "encrypted" in run("backup", party, "-o", out, "--passphrase", **secret)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert b"federation" not in out.read_bytes()
    assert "is there already" in run("backup", party, "-o", out, "--passphrase", code=1, **secret)
    wrong = {"VERTIKAL_BACKUP_PASSPHRASE": "open"}
    assert "passphrase is wrong" in run("restore", out, "--folder", place, code=1, **wrong)
    run("restore", out, "--folder", place, "--nothing-since", "--row-bits", "3", code=2, **secret)
    said = run("restore", out, "--folder", place, "--row-bits", "30", **secret)
    assert "restored  bank as of 20" in said
    assert DisclosureAccount(place / "store", "bank").balance("people", "lender").row_bits == 30
    assert "no shard of this backup is missing" in run(
        "restore", out, "--folder", place, "--models", **secret
    )
    plain = tmp_path / "plain.vk"
    assert "not encrypted" in run("backup", party, "-o", plain)
    with pytest.raises(InputError, match="it is encrypted; give its passphrase"):
        restore(out, tmp_path / "x", None, NOTHING)
    assert "cannot be read" in run("restore", tmp_path / "absent", code=1)
