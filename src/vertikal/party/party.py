"""The party: all that a program may see.

A program is one function that every party runs. It gets a `Party`, branches on `has_labels` where
roles differ, and returns its shard. Sockets, keys, files and other parties' columns are out of its
reach, and nothing leaves the party except through the methods here, each of which books it in the
ledger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.compute.place import Place
from vertikal.data.encoding import Encoding
from vertikal.data.tables import Table
from vertikal.errors import InputError, MeshError, PeerStopped, RingError
from vertikal.mesh.collectives import SHAPES, broadcast
from vertikal.mesh.interface import Mesh, Payload
from vertikal.party.booking import BookedMesh
from vertikal.party.checkpoints import CheckpointedTally, Checkpoints, PartOfCheckpoints
from vertikal.party.clock import Clock, Observer, Silent
from vertikal.party.direct_links import DirectLinks
from vertikal.party.row_sums import RowSums
from vertikal.party.sums import SecureSums, check_masking
from vertikal.privacy.ledger import Disclosure, Ledger
from vertikal.secure.hidden.dealing import Dealing, PreparedCorrelation
from vertikal.secure.hidden.hidden_features import HiddenBlock, HiddenFeatures
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys.agreement import PairKeys, agree
from vertikal.secure.keys.prg import derive_key, fresh_key
from vertikal.secure.psi.equal_count import count_equal
from vertikal.secure.psi.intersection import Intersection
from vertikal.secure.sealed.sealed_features import SealedBlock, SealedFeatures
from vertikal.secure.sums.pads import group_name
from vertikal.secure.two_party.roles import TwoRoles
from vertikal.secure.two_party.two_party_features import TwoPartyFeatures

Array: TypeAlias = npt.NDArray[Any]

AGREEMENT = Disclosure(
    "agreement",
    "public keys and the digest of the settings",
    "nothing about the data but the number of rows",
    masked=False,
)
RESUMED = Disclosure(
    "resumed", "how many blocks of sums a label party kept", "nothing about the data", masked=False
)


@dataclass(frozen=True)
class Labels:
    """Targets and weights of the rows, which a label party holds beside its columns.

    Rows that it cannot label have weight zero, and what their targets say means nothing.
    """

    targets: Array  # (rows, outputs)
    weights: Array  # (rows,)
    known: Array | None = None  # (rows,) bool, the rows that it can label; None: all

    def some(self, rows: Array) -> Labels:
        """Return the labels of some of the rows."""
        known = None if self.known is None else self.known[rows]
        return Labels(self.targets[rows], self.weights[rows], known)


class Party:
    """One party in one run of one job.

    ``secret`` is this party's own 32 bytes, from which its private part of the model is drawn;
    ``labels`` is None at a feature party. ``job`` names the run, and all parties must have the same
    ``settings_digest``. ``checkpoints`` are given at all parties or at none. ``prepared`` is what a
    dealer without columns has prepared for this run. ``place`` is where this party multiplies, by
    default in threads. ``save_shard`` is called with a shard that is
    good for prediction already, in case this party vanishes before the end.
    """

    def __init__(
        self,
        mesh: Mesh,
        table: Table,
        *,
        label_parties: tuple[str, ...],
        labels: Labels | None,
        secret: bytes,
        job: str,
        settings_digest: str,
        version: str,
        masking: str | None = "pads",
        shape: str = "star",
        observer: Observer | None = None,
        save_shard: Callable[[Any], None] = lambda shard: None,
        checkpoints: Checkpoints | None = None,
        prepared: PreparedCorrelation | None = None,
        place: Place | None = None,
    ) -> None:
        check_masking(masking, shape)
        strangers = [name for name in label_parties if name not in mesh.parties]
        if strangers or not label_parties:
            raise InputError.of(
                "label_parties", f"one or more of the parties {list(mesh.parties)}", label_parties
            )
        self.ledger = Ledger()
        self.table = table
        self.encoding: Encoding | None = None
        self.labels = labels
        self.masking = masking
        self.label_parties = label_parties
        self.checkpoints = checkpoints
        self.save_shard = save_shard
        self.place = place or Place()
        self._mesh = BookedMesh(mesh, self.ledger)
        self._secret = secret
        self._broadcasts: dict[tuple[str, ...], int] = {}
        self._hidden_runs: dict[str, int] = {}
        self._intersections = count()
        self._counts: dict[str, int] = {}
        self._prepared = prepared
        self.clock = Clock(mesh.me, observer or Silent(), lambda: self._mesh.traffic.bytes_sent)
        self.place.tell = lambda note: self.clock.advance(0, note)
        with self.clock.stage("agreement"), self._mesh.under(AGREEMENT):
            # Always fresh, whatever `secret`: no pad of one run can come again in another.
            self._keys = agree(
                self._mesh,
                fresh_key(),
                job=job,
                version=version,
                settings_digest=settings_digest,
                rows=table.rows,
                direct=self.place.offers_links,
            )
        self._sums = SecureSums(self._mesh, self._keys, masking, shape)
        offering = frozenset(
            (*self._keys.direct, *([self.name] if self.place.offers_links else []))
        )
        self._links: DirectLinks | None = None
        if self._sums.sent_to_their_receiver and len(offering) > 1:
            self._links = DirectLinks(self._mesh, self.place, label_parties, offering)

    @property
    def name(self) -> str:
        return self._mesh.me

    @property
    def parties(self) -> tuple[str, ...]:
        return self._mesh.parties

    @property
    def has_labels(self) -> bool:
        return self.name in self.label_parties

    @property
    def leader(self) -> str:
        """The first label party, which speaks for all where one has to."""
        return self.label_parties[0]

    @property
    def leads(self) -> bool:
        return self.name == self.leader

    @property
    def deadline(self) -> float:
        """Seconds that a wait may last."""
        return self._mesh.deadline

    @property
    def bytes_sent(self) -> int:
        return self._mesh.traffic.bytes_sent

    @contextmanager
    def naming(self, what: str) -> Iterator[None]:
        """Put this party's name and ``what`` before a refusal to encode a number."""
        try:
            yield
        except RingError as error:
            raise RingError(f"{self.name}: {what}: {error}") from None

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        """Let waits last this long meanwhile."""
        before, self._mesh.deadline = self._mesh.deadline, seconds
        try:
            yield
        finally:
            self._mesh.deadline = before

    @contextmanager
    def encoded(self, encoding: Encoding | None) -> Iterator[None]:
        """Let ``table`` be the encoded one meanwhile, and `encoding` say by what; None is as is."""
        if encoding is None:
            yield
            return
        before = self.table, self.encoding
        with self.clock.stage("encode"):
            self.table = self.place.table(encoding.apply(self.table))
            self.encoding = encoding
        try:
            yield
        finally:
            self.table, self.encoding = before

    def on(self, table: Table, labels: Labels | None, part: str) -> Party:
        """Return this party on another table, for one ``part`` of a program.

        The table holds other columns of the same rows, or of some of them. Mesh, keys, ledger and
        clock are the same; checkpoints are kept apart.
        """
        there = copy(self)
        there.table, there.labels = table, labels
        if self.checkpoints is not None:
            there.checkpoints = PartOfCheckpoints(self.checkpoints, part)
        return there

    def blocks_saved_at(self, label_party: str, name: str) -> int:
        """Tell everybody how many blocks of this name ``label_party`` saved in earlier runs.

        All parties call it in step. Nothing is sent, and it is 0, where runs have no checkpoints.
        """
        if self.checkpoints is None:
            return 0
        group = (label_party, *(one for one in self.parties if one != label_party))
        mine = None
        if label_party == self.name:
            mine = np.array([self.checkpoints.saved_blocks(name)], np.int64)
        told = np.asarray(self.broadcast(mine, group, RESUMED))
        if told.dtype != np.int64 or told.shape != (1,) or told[0] < 0:
            raise MeshError(
                f"{self.name}: {label_party} sent {told!r}, expected a number of blocks"
            )
        return int(told[0])

    def secret(self, *purpose: str) -> bytes:
        """Derive 32 bytes that only this party knows, others for each purpose."""
        return derive_key(self._secret, *purpose)

    def secure_sum(
        self,
        values: Array,
        to: str,
        disclosure: Disclosure,
        group: tuple[str, ...] | None = None,
    ) -> Array | None:
        """Sum everybody's ring elements, so that only ``to`` learns the sum; None at the others.

        ``values`` is overwritten. ``group`` are the parties that take part, all by default.
        """
        group = group or self.parties
        if len(group) == 1:
            return values
        return self._sums.sum(values, to, disclosure, group)

    @contextmanager
    def row_sums(self, disclosure: Disclosure) -> Iterator[RowSums]:
        """Take part in sums of elements of this table's rows, for one pass; all parties in step.

        Elements are masked where they arise. They go through the parties' own processes, or from
        worker to worker where parties offer that.
        """
        sums = RowSums(self._mesh, self._sums, self.place, self.table, disclosure, self._links)
        try:
            yield sums
        finally:
            sums.close()

    def phase_sum(
        self, phases: Array, offsets: Array, to: str, disclosure: Disclosure
    ) -> Array | None:
        """Sum everybody's phases (rows, D), each with its own random offset per direction.

        With pads the offsets of all parties stay in the sum. With trees FDSKL Algorithm 3 is
        followed: ``offsets`` (D,), which ``phases`` contain, are taken out again, all but one
        party's.
        """
        if len(self.parties) == 1:
            return phases
        return self._sums.phase_sum(phases, offsets, to, disclosure)

    def sum_to_group(self, values: Array, group: tuple[str, ...], disclosure: Disclosure) -> Array:
        """Sum the ring elements of ``group``, so that all of the group learn the sum."""
        total = self.secure_sum(values, group[0], disclosure, group)
        if len(group) == 1:
            return values
        # The total itself travels in the open among those who are to learn it.
        opened = replace(disclosure, what=f"the total of the {disclosure.name}", masked=False)
        return np.array(self.broadcast(total, group, opened))

    def broadcast(
        self, payload: Payload | None, group: tuple[str, ...], disclosure: Disclosure
    ) -> Payload:
        """Tell all of ``group`` what the first of them holds (reverse tree order)."""
        number = self._broadcasts[group] = self._broadcasts.get(group, -1) + 1
        tag = f"broadcast/{disclosure.name}/{group_name(group)}/{number}"
        with self._mesh.under(disclosure):
            return broadcast(self._mesh, payload, SHAPES["tree"](group), tag)

    def tell(self, to: str, payload: Payload, disclosure: Disclosure) -> None:
        """Send one party a message; those of one kind arrive in the order of sending."""
        with self._mesh.under(disclosure):
            self._mesh.send(to, f"message/{disclosure.name}", payload)

    def hear(self, from_: str, disclosure: Disclosure) -> Payload:
        """Receive the next message of this kind from ``from_``."""
        return self._mesh.recv(from_, f"message/{disclosure.name}")

    def excuse(self, name: str) -> None:
        """Let the failure of ``name`` no longer end waits for others."""
        self._mesh.excuse(name)

    def go_on_without(self, name: str) -> None:
        """Wait until this party itself sees that ``name`` has stopped; then `excuse` it."""
        try:
            self._mesh.recv(name, "message/farewell")
        except PeerStopped as stopped:
            if stopped.peer != name:
                raise
        self._mesh.excuse(name)

    def hidden_features(
        self,
        label_party: str,
        helper: str,
        dealer: str,
        agreed: HiddenBlock,
        disclosures: Mapping[str, Disclosure],
        *,
        lasting: bool = False,
    ) -> HiddenFeatures:
        """Take part in features that ``label_party`` multiplies by and nobody sees.

        All parties call it in step, for each label party. ``disclosures`` has one entry per kind of
        message (`hidden_features.STEPS`). Each call has seeds and pads of its own. ``lasting``: the
        helper counts what it opens over all runs that share its checkpoints.
        """
        return HiddenFeatures(
            *self._roles_and_keys(Roles(label_party, helper, dealer, self.parties), disclosures),
            agreed,
            lambda step: self._mesh.under(disclosures[step]),
            self._tally(label_party, lasting=lasting),
            self.place.matrices,
        )

    def two_party_features(
        self,
        label_party: str,
        helper: str,
        agreed: HiddenBlock,
        disclosures: Mapping[str, Disclosure],
        *,
        lasting: bool = False,
    ) -> TwoPartyFeatures:
        """Take part in features of two parties that nobody sees, without a dealer.

        As `hidden_features`, with `two_party_features.STEPS`.
        """
        return TwoPartyFeatures(
            self._mesh,
            self._keys,
            TwoRoles(label_party, helper, self._session(label_party)),
            agreed,
            lambda step: self._mesh.under(disclosures[step]),
            self._tally(label_party, lasting=lasting),
        )

    def _tally(self, label_party: str, *, lasting: bool) -> CheckpointedTally | None:
        """Return the count of what all runs of the job have opened, if this one is to be added."""
        if lasting and self.checkpoints is not None:
            return CheckpointedTally(self.checkpoints, label_party)
        return None

    def _session(self, label_party: str) -> str:
        """Number this run of hidden phases, so that its seeds and pads are its own."""
        number = self._hidden_runs.get(label_party, -1) + 1
        self._hidden_runs[label_party] = number
        return str(number)

    def sealed_features(
        self,
        label_party: str,
        helper: str,
        dealer: str,
        agreed: SealedBlock,
        disclosures: Mapping[str, Disclosure],
    ) -> SealedFeatures:
        """Take part in features and vectors that ``label_party`` and ``helper`` only share.

        As `hidden_features`, with `sealed_features.STEPS`.
        """
        return SealedFeatures(
            *self._roles_and_keys(Roles(label_party, helper, dealer, self.parties), disclosures),
            agreed,
            lambda step: self._mesh.under(disclosures[step]),
            self.place.matrices,
        )

    def _roles_and_keys(
        self, roles: Roles, disclosures: Mapping[str, Disclosure]
    ) -> tuple[Mesh, PairKeys, Roles, Dealing | None]:
        """Number this run of hidden phases and deal keys.

        A party without a role gets no keys from the dealer.
        """
        roles = replace(roles, session=self._session(roles.label_party))
        if self.name not in roles.names:
            return self._mesh, self._keys, roles, None
        # Taken out: what was prepared serves one run.
        prepared, self._prepared = self._prepared, None
        with self._mesh.under(disclosures["keys"]):
            return self._mesh, self._keys, roles, Dealing(self._mesh, self._keys, roles, prepared)

    def agrees_with(self, peer: str, data: bytes, disclosure: Disclosure) -> bool:
        """Compare ``data`` with what ``peer`` holds; both call it, and learn only if it is equal.

        What travels is a digest under the key of this pair, which no third party can read.
        """
        key = self._keys.key(peer, "comparison", disclosure.name)
        text = hashlib.sha256(data).hexdigest()
        mine, theirs = (derive_key(key, name, text) for name in (self.name, peer))
        self.tell(peer, {"digest": mine}, disclosure)
        return self.hear(peer, disclosure) == {"digest": theirs}

    def count_equal(self, peer: str, things: Sequence[bytes], disclosure: Disclosure) -> int:
        """Count the places at which ``peer`` holds the same thing; nobody learns which."""
        number = self._counts[peer] = self._counts.get(peer, -1) + 1
        return count_equal(self._mesh, peer, things, str(number), self._mesh.under(disclosure))

    def intersection(
        self,
        group: tuple[str, ...],
        ids: Sequence[bytes],
        disclosures: Mapping[str, Disclosure],
    ) -> Intersection:
        """Take part in finding the ids that all of ``group`` have; its first party leads.

        ``disclosures`` has one entry per kind of message (`intersection.STEPS`).
        """
        return Intersection(
            self._mesh,
            self._keys,
            group,
            ids,
            str(next(self._intersections)),
            self.secret("order of common ids"),
            lambda step: self._mesh.under(disclosures[step]),
            self.clock.advance,
        )


def digest(settings: msgspec.Struct) -> str:
    """SHA-256 of settings in canonical form; all parties of a job must have the same."""
    return hashlib.sha256(msgspec.json.encode(settings, order="sorted")).hexdigest()
