"""The federation while services run: new keys and removed members, taken up without a restart.

A party's owner renews its key (`rotate`), proposes that members leave (`remove`) or agrees to that
(`accept`). Services pass changes on to one another, each with its signatures, and go by those that
hold as soon as they have them (`node/config/federation_changes.py` says which do).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from vertikal.errors import InputError
from vertikal.node.approval.decisions import Decisions
from vertikal.node.approval.job_records import JobBook
from vertikal.node.config import federation_changes
from vertikal.node.config.federation_changes import Removal, Rotation, SignedChange, describe
from vertikal.node.config.federation_file import FederationFile
from vertikal.node.links.gossip import Gossip
from vertikal.node.links.messages import Changed
from vertikal.node.links.standing_links import StandingLinks
from vertikal.node.runs.job_runs import JobRuns
from vertikal.node.storage.party_home import PartyHome
from vertikal.secure.keys.identity import Certificate, Identity

AGAIN = 5.0
"""Seconds after which a peer whose file differs is sent this party's changes again."""
MAX_SENT = 128 << 10
"""Bytes of changes in one message: well below what a control message may have."""


class Membership:
    """All that one party says and hears about keys and members."""

    def __init__(
        self,
        home: PartyHome,
        book: JobBook,
        links: StandingLinks,
        gossip: Gossip,
        decisions: Decisions,
        runs: JobRuns,
        say: Callable[[str], None],
    ) -> None:
        self._home = home
        self._book = book
        self._links = links
        self._gossip = gossip
        self._decisions = decisions
        self._runs = runs
        self._say = say
        self._lock = threading.RLock()
        self._sent: dict[str, tuple[str, float]] = {}
        """By peer: the state of this party's file when it was last sent, and when that was."""

    # The owner's commands.

    def rotate(self, days: float, anyway: bool) -> str:
        """Make a new key, sign it by the old one, and use it from now on; its fingerprint."""
        with self._lock:
            home = self._home
            away = [name for name, one in self._links.presence().items() if not one.up]
            if away and not anyway:
                raise InputError(
                    f"{', '.join(away)} cannot hear of a new key now, and would refuse {home.me} "
                    "afterwards; wait until all are connected, or use --anyway and send them "
                    "your federation file for `vertikal federation update`"
                )
            identity = Identity.create(home.me, days)
            change = federation_changes.rotate(
                home.federation.root, home.identity, identity.certificate
            )
            federation = home.federation.with_change(change)
            if federation.state == home.federation.state:
                raise InputError(
                    f"{home.me} has had {federation_changes.MAX_KEYS} keys; make a new federation "
                    "file with all parties"
                )
            self._go_by(federation, change, identity)
            self._book.sign_again(home.me, home.keys)
            return identity.certificate.fingerprint

    def remove(self, names: Sequence[str]) -> SignedChange:
        """Propose that these members leave; by proposing it, this party signs it."""
        with self._lock:
            federation = self._home.federation
            for name in names:
                federation.member(name)
            if self._home.me in names:
                raise InputError(
                    "NAMES must be other parties: who leaves by itself stops its service, and "
                    "the others remove it"
                )
            change = federation_changes.remove(
                federation.root, federation.names, names, self._home.identity
            )
            if federation.with_change(change).state == federation.state:
                raise InputError(
                    "NAMES must leave a party that listens, got all that do; make a new federation "
                    "file in which another one listens"
                )
            self._take(change)
            return self._known(change.digest)

    def accept(self, digest: str) -> SignedChange:
        """Sign a removal that somebody proposed."""
        with self._lock:
            pending = self._home.federation.history.pending
            found = [one for one in pending if digest and one.digest.startswith(digest)]
            if len(found) != 1:
                raise InputError.of(
                    "DIGEST", "that of a proposed change (`vertikal federation changes`)", digest
                )
            statement = found[0].statement
            if isinstance(statement, Removal) and self._home.me in statement.removed:
                raise InputError("this change is about this party itself: the others decide")
            self._take(found[0].signed_by(self._home.identity))
            return self._known(found[0].digest)

    def update(self, path: Path) -> FederationFile:
        """Take in the changes in a federation file that was brought by hand."""
        brought = FederationFile.load(path)
        if brought.root != self._home.federation.root:
            raise InputError(
                f"{path.name!r} is the file of another federation: its entries differ from those "
                "of this party's own"
            )
        self.take(brought.changes)
        return self._home.federation

    def _known(self, digest: str) -> SignedChange:
        return next(one for one in self._home.federation.changes if one.digest == digest)

    # What the peers say.

    def hear(self, sender: str, state: str) -> None:
        """Send a peer this party's changes if its file differs, by its beat."""
        mine = self._home.federation.state
        if state == mine:
            return
        with self._lock:
            last, when = self._sent.get(sender, ("", 0.0))
            if last == mine and time.monotonic() - when < AGAIN:
                return
            self._sent[sender] = (mine, time.monotonic())
        self._tell(sender)

    def take(self, changes: Iterable[SignedChange]) -> None:
        """Take in changes; those that do not hold are left aside."""
        for change in changes:
            with self._lock:
                self._take(change)

    def _take(self, change: SignedChange) -> None:
        federation = self._home.federation
        known = {one.digest: one for one in federation.changes}.get(change.digest)
        if known is not None and not change.signatures.keys() - known.signatures.keys():
            return
        new = federation.with_change(change)
        if new.state == federation.state:
            self._suspect(federation, change)
            return
        statement = change.statement
        if isinstance(statement, Rotation):
            Certificate.parse(statement.certificate.encode()).check_time()
        if self._home.me not in new.names:
            # The others speak to this party no more. Its own file stays: it did not sign.
            words = describe(change)
            self._home.note_once("removed from the federation", words)
            self._say(f"this party was removed from the federation: {words}")
            return
        self._go_by(new, change)

    def _suspect(self, federation: FederationFile, change: SignedChange) -> None:
        """Note a second new key that the same old key signed: somebody else has that key."""
        statement = change.statement
        if not isinstance(statement, Rotation) or statement.root != federation.root:
            return
        for certificate in federation.history.earlier.get(statement.party, ()):
            if certificate.fingerprint == statement.old and federation_changes.is_signed(
                change, certificate
            ):
                words = (
                    f"two new keys of {statement.party} are signed by its old key "
                    f"{statement.old}: somebody else has that key. Call its owner; remove "
                    f"{statement.party} if the key listed here is not the owner's"
                )
                self._home.note_once("key conflict", words)
                self._say(words)

    # What follows from a change.

    def _go_by(
        self, new: FederationFile, change: SignedChange, identity: Identity | None = None
    ) -> None:
        old = self._home.federation
        self._home.adopt(new, identity)
        try:
            self._announce(old, new, change)
        finally:
            # Also where the disk is full: nobody may keep a link by a key that counts no more.
            if new.serial > old.serial:
                self._decisions.forget_refusals()
                self._links.adopt(new, self._home.keys)

    def _announce(self, old: FederationFile, new: FederationFile, change: SignedChange) -> None:
        """Tell the owner, the log and the other parties, and stop the jobs of removed members."""
        holds = new.serial > old.serial
        event = "federation changed" if holds else "federation change proposed"
        words = describe(next(one for one in new.changes if one.digest == change.digest))
        self._say(f"{event} (serial {new.serial}): {words}")
        if not holds:
            self._say("`vertikal federation changes` shows it; `vertikal federation accept` signs")
        # Removed members are told as well, before their links end.
        for name in old.names:
            if name != self._home.me:
                self._tell(name)
        self._home.log.record(event, serial=new.serial, digest=change.digest, words=words)
        self._stop_jobs([name for name in old.names if name not in new.names], new)

    def _stop_jobs(self, removed: Sequence[str], new: FederationFile) -> None:
        for record in self._book.all():
            for name in removed:
                if record.open and name in record.proposal.job.parties:
                    reason = f"{name} {new.why_not(name)}"
                    self._decisions.stop(record, reason, reason)
                    self._runs.end(record, reason)

    def _tell(self, name: str) -> None:
        for part in _parts(self._home.federation.changes):
            self._gossip.tell(name, Changed(part))

    def summary(self) -> dict[str, Any]:
        """All changes as plain values, for the owner."""
        federation = self._home.federation
        return {
            "serial": federation.serial,
            "members": list(federation.names),
            "changes": [
                {"digest": one.digest, "state": state, "words": describe(one)}
                for state, group in (
                    ("holds", federation.history.applied),
                    ("proposed", federation.history.pending),
                )
                for one in group
            ],
        }


def _parts(changes: Sequence[SignedChange]) -> Iterator[tuple[SignedChange, ...]]:
    """Split changes into messages that are not too long."""
    part: list[SignedChange] = []
    size = 0
    for change in changes:
        length = len(msgspec.msgpack.encode(change))
        if part and size + length > MAX_SENT:
            yield tuple(part)
            part, size = [], 0
        part.append(change)
        size += length
    if part:
        yield tuple(part)
