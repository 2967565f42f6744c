"""A party's home: its party file, key, federation file, store and audit log."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from vertikal.errors import DiskFull, InputError
from vertikal.files import Room, lock_file, private_folder
from vertikal.node.config.federation_file import FederationFile
from vertikal.node.config.party_file import PartyFile
from vertikal.node.rate_limit import RateLimit
from vertikal.node.storage.audit_log import AuditLog, Fact
from vertikal.node.storage.compared_keys import ComparedKeys
from vertikal.node.storage.disclosure_account import DisclosureAccount
from vertikal.node.storage.key_renewal import finish_renewal, save_renewal
from vertikal.node.storage.store_format import check_store
from vertikal.secure.keys.identity import Identity

if TYPE_CHECKING:
    from vertikal.privacy.budget import BudgetFile
    from vertikal.privacy.ledger import Ledger


REFUSALS = (100, 3600.0)
"""Refusals of one peer that are written to the audit log: so many, in so many seconds."""


class PartyHome:
    """All that a party's service needs of its own disk; one process at a time has the store."""

    def __init__(self, path: Path, passphrase: bytes | None = None) -> None:
        self.folder = path.parent
        self.file = PartyFile.load(path)
        self.me = self.file.name
        self.policy = self.file.policy
        self._passphrase = passphrase
        self.federation = FederationFile.load(self._federation_path)
        key, certificate = self._key_paths
        finish_renewal(key, certificate, self.federation.member(self.me).fingerprint)
        self.identity = Identity.load(key, certificate, passphrase)
        if self.identity.name != self.me:
            raise InputError.of(
                "party file: certificate", f"that of {self.me!r}", self.identity.name
            )
        self.keys = self.federation.credentials(self.identity)
        self.store = private_folder(self.folder / self.file.store)
        self._alone = _lock(self.store)
        try:
            check_store(self.store)
        except BaseException:
            self._alone.close()
            raise
        self.log = AuditLog(self.store / "audit.log", self.me)
        self.account = DisclosureAccount(self.store, self.me)
        self.compared = ComparedKeys(self.store, self.me)
        self.room = Room(self.store)
        self._unwritten: list[tuple[str, dict[str, Fact]]] = []
        """Events for which the audit log has had no room so far."""
        self._refusing = threading.Lock()
        self._refusals: dict[str, RateLimit] = {}
        self._left_out: dict[str, int] = {}
        """Refusals since the last one in the audit log, by peer."""
        self._noted: set[tuple[str, str]] = set()
        """Events that `note_once` has written, so that it writes none twice."""

    def close(self) -> None:
        self._alone.close()

    @property
    def _federation_path(self) -> Path:
        return self.folder / self.file.federation

    @property
    def _key_paths(self) -> tuple[Path, Path]:
        return self.folder / self.file.key, self.folder / self.file.certificate

    def adopt(self, federation: FederationFile, identity: Identity | None = None) -> None:
        """Go by a changed federation file, which is on disk before anything else happens.

        ``identity`` is this party's own, if it is the one that has a new key. A crash in between
        leaves the old key with the old file, or is mended by `finish_renewal` at the next start.
        """
        keys = federation.credentials(identity or self.identity)
        if identity is not None:
            save_renewal(identity, *self._key_paths, self._passphrase)
        federation.save(self._federation_path)
        if identity is not None:
            finish_renewal(*self._key_paths, identity.certificate.fingerprint)
            self.identity = identity
        self.federation, self.keys = federation, keys

    @property
    def budget(self) -> BudgetFile | None:
        """The file in which jobs with differential privacy are charged, if the policy has one."""
        if self.policy.privacy is None:
            return None
        from vertikal.privacy.budget import BudgetFile

        path, total = self.store / "budget.json", self.policy.privacy
        return BudgetFile.obtain(path, epsilon=total.epsilon, delta=total.delta)

    def not_compared(self, parties: Sequence[str] | None = None) -> list[str]:
        """The other parties, of all or of these, whose keys the owner has not compared."""
        missing = self.compared.missing(self.federation)
        return missing if parties is None else [name for name in missing if name in parties]

    def note(self, event: str, job: Mapping[str, Fact], text: str = "") -> None:
        """Write an event of a job to the audit log; `JobRecord.facts` name the job."""
        self._record(event, **job, words=text)

    def note_once(self, event: str, text: str) -> None:
        """Write an event to the audit log, unless this process has written the same before.

        A full disk is no error here: the line is then written when there is room again.
        """
        if (event, text) not in self._noted:
            self._noted.add((event, text))
            with suppress(DiskFull):
                self._record(event, words=text)

    def note_ledgers(self, what: str, digest: str, ledgers: Sequence[Ledger]) -> None:
        """Write to the audit log how many bytes left this party, by kind and receiver."""
        sent: dict[str, int] = {}
        for entry in (entry for ledger in ledgers for entry in ledger.entries()):
            key = f"{entry.disclosure.name} to {entry.receiver}"
            sent[key] = sent.get(key, 0) + entry.bytes
        self._record("sent", what=what, digest=digest, bytes=sent)

    def _record(self, event: str, **facts: Fact) -> None:
        """Write to the audit log; a line for which there is no room is kept until there is."""
        try:
            self.log.record(event, **facts)
        except DiskFull:
            self._unwritten.append((event, facts))
            raise

    def has_room(self) -> bool:
        """Tell whether the disk has room, after writing the audit lines that waited for it."""
        try:
            while self.room.regained() and self._unwritten:
                event, facts = self._unwritten[0]
                self.log.record(event, **facts)
                del self._unwritten[0]
        except DiskFull:
            self.room.full = True
        return not self.room.full

    def mind_room(self, error: BaseException) -> None:
        """After a write that found the disk full, let no run begin until there is room."""
        if isinstance(error, DiskFull):
            self.room.full = True

    def note_refusal(self, sender: str, reason: str) -> bool:
        """Write to the audit log that a peer asked for something and did not get it.

        False if the peer was refused so often in the last hour that this line is only counted: the
        next one of that peer says how many were left out.
        """
        with self._refusing:
            limit = self._refusals.setdefault(sender, RateLimit(*REFUSALS))
            if not limit.take():
                self._left_out[sender] = self._left_out.get(sender, 0) + 1
                return False
            left_out = self._left_out.pop(sender, 0)
        facts: dict[str, Fact] = {"left_out": left_out} if left_out else {}
        self.log.record("refused", peer=sender, words=" ".join(reason.split())[:500], **facts)
        return True


def _lock(store: Path) -> IO[bytes]:
    """Lock the store for this process, until it ends."""
    in_use = f"store {store.name!r} is in use: the service of this party runs already"
    return lock_file(store / "lock", in_use)
