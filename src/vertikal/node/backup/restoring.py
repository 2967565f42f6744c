"""A party that goes on from a backup, without its counts going back.

What a party has opened since its backup was made is not in it. Nobody else's word is taken for it,
so the worst is assumed: that since then every receiver was shown as much as the policy allows. So
the restored account stands at its limit, every person has been asked about as often as may be with
every model, the rows of today and the privacy budget are spent, and jobs that were open are ended.
The owner can know better, and says so: by the numbers of `Since`, which the audit log keeps.

Pads and masks cannot come twice: each run and each session draws its keys anew, checkpoints and
prepared correlations are in no backup, and jobs that had begun are ended.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from vertikal.errors import InputError
from vertikal.files import move_over, private_folder, sync_folder, write_whole
from vertikal.node.backup import archive
from vertikal.node.backup.archive import BackupHead, read_backup
from vertikal.node.backup.restored_mark import MARK, RestoredMark
from vertikal.node.config.federation_file import FederationFile
from vertikal.node.config.party_file import PartyFile, Policy
from vertikal.node.models.store import ModelStore
from vertikal.node.predictions.daily_limit import DailyLimit
from vertikal.node.storage.audit_log import AuditLog
from vertikal.node.storage.disclosure_account import DisclosureAccount, Opening
from vertikal.node.storage.question_count import QuestionCount
from vertikal.privacy.budget import BudgetFile


@dataclass(frozen=True)
class Since:
    """The owner's knowledge of the time between backup and restore; None is the worst."""

    row_bits: int | None = None
    """Bits about a row that were opened to any one receiver, at most."""
    questions: int | None = None
    """Questions about any one person with any one model, at most."""
    privacy: bool = True
    """False if no job with differential privacy has run."""
    today: bool = True
    """False if no row was predicted today."""


NOTHING = Since(0, 0, False, False)


def restore(
    backup: Path, folder: Path, passphrase: bytes | None, since: Since
) -> tuple[BackupHead, Path]:
    """Put a party's files where its party file has them, which it names relative to ``folder``.

    Nothing that is there is written over. Returns the head of the backup and the party file.
    """
    with _staging(folder, backup, passphrase) as found:
        content = found.party_file
        if content.name != found.head.party:
            raise InputError(f"backup {backup.name!r}: its party file is that of {content.name!r}")
        places = {
            archive.KEY: folder / content.key,
            archive.CERTIFICATE: folder / content.certificate,
            archive.FEDERATION: folder / content.federation,
            archive.STORE: folder / content.store,
            # Last, so that nothing can be started that is half there.
            archive.PARTY: folder / Path(found.head.party_file).name,
        }
        for place in places.values():
            if place.exists() or place.is_symlink():
                raise InputError(
                    f"{place.name!r} is there already; restore into another folder, or move it "
                    "away: a restored state must not be put over a newer one"
                )
        members = FederationFile.load(found.folder / archive.FEDERATION).names
        store = private_folder(found.folder / archive.STORE)
        assume(store, content, members, found.head, since)
        for name, place in places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            _move(found.folder / name, place)
        return found.head, places[archive.PARTY]


def restore_models(backup: Path, party: Path, passphrase: bytes | None) -> list[str]:
    """Bring back shards that a party's store lacks, and nothing that counts; returns which."""
    content = PartyFile.load(party)
    store = party.parent / content.store
    with _staging(party.parent, backup, passphrase) as found:
        if found.head.party != content.name:
            raise InputError.of("backup", f"one of {content.name!r}", found.head.party)
        models = private_folder(store / "models")
        brought = []
        for version in sorted((found.folder / archive.STORE / "models").glob("*/*")):
            name, number = version.parent.name, version.name
            place = models / name / number
            if number.isdigit() and not place.exists():
                private_folder(place.parent)
                _move(version, place)
                brought.append(f"{name}, version {number}")
        if brought:
            AuditLog(store / "audit.log", content.name).record(
                "models restored", backup=found.head.created, models=brought
            )
        return brought


def assume(
    store: Path, file: PartyFile, members: Sequence[str], head: BackupHead, since: Since
) -> None:
    """Book what may have happened since the backup, and leave a mark for the service."""
    policy = file.policy
    now = datetime.now(UTC).isoformat(timespec="seconds")
    row_bits = policy.most_row_bits if since.row_bits is None else since.row_bits
    questions = policy.most_questions if since.questions is None else since.questions
    if row_bits:
        receivers = [name for name in members if name != file.name]
        DisclosureAccount(store, file.name).book(
            [_opening(table, one, row_bits, now) for table in file.tables for one in receivers],
            check=lambda: None,
        )
    if questions:
        jobs = [str(one.facts.get("job")) for one in ModelStore(store / "models").versions([])]
        QuestionCount(store / "questions", policy.most_questions).assume(jobs, questions)
    if since.today:
        DailyLimit(store / "predictions", policy.predictions_per_day).spend_all()
    if since.privacy:
        _spend_budget(store, file.name, policy)
    mark = RestoredMark(1, head.created, worst=since != NOTHING)
    write_whole(store / MARK, msgspec.json.encode(mark))
    AuditLog(store / "audit.log", file.name).record(
        "restored",
        backup=head.created,
        row_bits=row_bits,
        questions=questions,
        privacy_spent=since.privacy,
        today_spent=since.today,
    )


def _opening(table: str, receiver: str, row_bits: int, now: str) -> Opening:
    return Opening(
        job=f"restored {now} {table}",
        name="unknown, since the backup",
        table=table,
        receiver=receiver,
        level="unknown",
        rows=0,
        values=1,
        value_bits=row_bits,
    )


def _spend_budget(store: Path, party: str, policy: Policy) -> None:
    path = store / "budget.json"
    if path.exists():
        BudgetFile(path).spend_rest(party, "restored")
    elif policy.privacy is not None:
        total = policy.privacy
        budget = BudgetFile.create(path, epsilon=total.epsilon, delta=total.delta)
        budget.spend_rest(party, "restored")


@contextmanager
def _staging(folder: Path, backup: Path, passphrase: bytes | None) -> Iterator[archive.Restored]:
    """Read a backup into a folder beside its place, which is gone afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    stage = folder / f".restoring-{secrets.token_hex(8)}"
    stage.mkdir(mode=0o700)
    try:
        yield read_backup(backup, stage, passphrase)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _move(source: Path, place: Path) -> None:
    """Move a file or folder into place; a file also to another disk."""
    try:
        os.rename(source, place)
    except OSError:
        if source.is_dir():
            shutil.copytree(source, place)
        else:
            move_over(place, source.read_bytes())
    sync_folder(place.parent)
