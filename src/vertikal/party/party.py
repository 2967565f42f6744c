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
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.data.tables import Table
from vertikal.errors import InputError, PeerStopped, RingError
from vertikal.mesh.collectives import SHAPES, broadcast
from vertikal.mesh.interface import Mesh, Payload
from vertikal.party.booking import BookedMesh
from vertikal.party.checkpoints import Keeper, KeptTally
from vertikal.party.clock import Clock, Observer, Silent
from vertikal.privacy.ledger import Disclosure, Ledger
from vertikal.secure.hidden.dealing import Dealing, Stock
from vertikal.secure.hidden.hidden_features import Agreed, HiddenFeatures
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import PairKeys, agree
from vertikal.secure.lattice_gaussian import DISTANCE as NOISE_DISTANCE
from vertikal.secure.lattice_gaussian import LOG_RATIO as NOISE_LOG_RATIO
from vertikal.secure.lattice_gaussian import LatticeGaussian, lattice_for
from vertikal.secure.psi.intersection import Intersection
from vertikal.secure.sealed.preparing import Preparing
from vertikal.secure.sealed.sealed_features import MATRIX_BITS as SEALED_BITS
from vertikal.secure.sealed.sealed_features import AgreedSealed, SealedFeatures
from vertikal.secure.sums.open_sum import OpenSum
from vertikal.secure.sums.pads import PaddedSum, group_name
from vertikal.secure.sums.two_trees import TwoTreesSum, kept_offset

Array: TypeAlias = npt.NDArray[Any]
Hidden: TypeAlias = HiddenFeatures
HiddenBlock: TypeAlias = Agreed
Sealed: TypeAlias = SealedFeatures
SealedBlock: TypeAlias = AgreedSealed

__all__ = [
    "MASKINGS",
    "NOISE_DISTANCE",
    "NOISE_LOG_RATIO",
    "SEALED_BITS",
    "Hidden",
    "HiddenBlock",
    "Keeper",
    "Labels",
    "Party",
    "Preparing",
    "Sealed",
    "SealedBlock",
    "digest",
]

MASKINGS = ("pads", "trees")
"""How secure sums are masked; ``None`` sends them in the clear, as some papers do."""

AGREEMENT = Disclosure(
    "agreement",
    "public keys and the digest of the settings",
    "nothing about the data but the number of rows",
    masked=False,
)


@dataclass(frozen=True)
class Labels:
    """What a label party holds beside its columns."""

    targets: Array  # (rows, outputs)
    weights: Array  # (rows,)


class Party:
    """One party in one run of one job.

    ``secret`` is this party's own 32 bytes, from which its private part of the model is drawn;
    ``labels`` is None at a feature party. ``job`` names the run, ``settings`` is the digest all
    parties must share. All have a ``keeper`` or none. ``stock``: what a bare dealer prepared.
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
        settings: str,
        version: str,
        masking: str | None = "pads",
        shape: str = "star",
        observer: Observer | None = None,
        keep: Callable[[Any], None] = lambda shard: None,
        keeper: Keeper | None = None,
        stock: Stock | None = None,
    ) -> None:
        if masking is not None and masking not in MASKINGS:
            raise InputError.of("masking", f"one of {MASKINGS}", masking)
        if shape not in SHAPES:
            raise InputError.of("shape", f"one of {list(SHAPES)}", shape)
        strangers = [name for name in label_parties if name not in mesh.parties]
        if strangers or not label_parties:
            raise InputError.of(
                "label_parties", f"one or more of the parties {list(mesh.parties)}", label_parties
            )
        self.ledger = Ledger()
        self.table = table
        self.labels = labels
        self.label_parties = label_parties
        self.keeper = keeper
        self._mesh = BookedMesh(mesh, self.ledger)
        self._secret = secret
        self._masking = masking
        self._shape = shape
        self.keep = keep
        """Called with a shard that is good for prediction already, should this party vanish."""
        self._sums: dict[tuple[tuple[str, ...], str], PaddedSum | TwoTreesSum | OpenSum] = {}
        self._broadcasts: dict[tuple[str, ...], int] = {}
        self._hidden: dict[str, int] = {}
        self._intersections = count()
        self._stock = stock
        self.clock = Clock(mesh.me, observer or Silent(), lambda: self._mesh.traffic.bytes_sent)
        with self.clock.stage("agreement"), self._mesh.under(AGREEMENT):
            # Always fresh, whatever `secret`: no pad of one run can come again in another.
            self._keys = agree(
                self._mesh,
                prg.fresh_key(),
                job=job,
                version=version,
                settings=settings,
                rows=table.rows,
            )

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

    def secret(self, *purpose: str) -> bytes:
        """32 bytes that only this party knows, one lot per purpose."""
        return prg.derive_key(self._secret, *purpose)

    @staticmethod
    def derive(key: bytes, *purpose: str) -> bytes:
        """An independent key for ``purpose``."""
        return prg.derive_key(key, *purpose)

    @staticmethod
    def uniforms(key: bytes, shape: tuple[int, ...]) -> Array:
        """Uniform reals in (0, 1), drawn by the stream cipher under ``key``."""
        return prg.uniform_reals(key, 0, shape)

    @staticmethod
    def words(key: bytes, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Uniform ring elements, drawn by the stream cipher under ``key``."""
        return prg.uniform_words(key, 1, shape, dtype)

    @staticmethod
    def noise_lattice(deviation: float) -> int:
        """The fraction bits at which `gaussian_noise` can have this deviation."""
        return lattice_for(deviation)

    @staticmethod
    def gaussian_noise(width: float, shape: tuple[int, ...]) -> Array:
        """Discrete Gaussian integers of deviation ``width`` (int64), fresh at every call.

        The key comes from the operating system whatever ``secret`` is: noise that came twice would
        cancel.
        """
        return LatticeGaussian(width).sample(prg.fresh_key(), shape)

    def secure_sum(
        self,
        values: Array,
        to: str,
        disclosure: Disclosure,
        group: tuple[str, ...] | None = None,
    ) -> Array | None:
        """The sum of everybody's ring elements, learned by ``to`` only; None at the others.

        ``values`` is overwritten. ``group`` are the parties that take part, all by default.
        """
        group = group or self.parties
        if len(group) == 1:
            return values
        with self._mesh.under(self._as_sent(disclosure)):
            return self._sum(group, disclosure.name).sum(values, to)

    def phase_sum(
        self, phases: Array, offsets: Array, to: str, disclosure: Disclosure
    ) -> Array | None:
        """The sum of everybody's phases (rows, D), each with its own random offset per direction.

        With pads the offsets of all parties stay in the sum. With trees FDSKL Algorithm 3 is
        followed: ``offsets`` (D,), which ``phases`` contain, are taken out again, all but one
        party's.
        """
        if len(self.parties) == 1:
            return phases
        summation = self._sum(self.parties, disclosure.name)
        with self._mesh.under(self._as_sent(disclosure)):
            if isinstance(summation, TwoTreesSum):
                return summation.phase_sum(phases, offsets, to, kept_offset(self.parties, to))
            return summation.sum(phases, to)

    def sum_to_group(self, values: Array, group: tuple[str, ...], disclosure: Disclosure) -> Array:
        """The sum of the ring elements of ``group``, learned by all of the group."""
        total = self.secure_sum(values, group[0], disclosure, group)
        if len(group) == 1:
            return values
        # The total itself travels in the open among those who are to learn it.
        opened = replace(disclosure, what=f"the total of the {disclosure.name}", masked=False)
        return np.array(self.broadcast(total, group, opened))

    def broadcast(
        self, payload: Payload | None, group: tuple[str, ...], disclosure: Disclosure
    ) -> Payload:
        """What the first of ``group`` holds, at all of them (reverse tree order)."""
        number = self._broadcasts[group] = self._broadcasts.get(group, -1) + 1
        tag = f"broadcast/{disclosure.name}/{group_name(group)}/{number}"
        with self._mesh.under(disclosure):
            return broadcast(self._mesh, payload, SHAPES["tree"](group), tag)

    def tell(self, to: str, payload: Payload, disclosure: Disclosure) -> None:
        """A message to one party; those of one kind arrive in the order in which they were sent."""
        with self._mesh.under(disclosure):
            self._mesh.send(to, f"message/{disclosure.name}", payload)

    def hear(self, from_: str, disclosure: Disclosure) -> Payload:
        """The next message of this kind from ``from_``."""
        return self._mesh.recv(from_, f"message/{disclosure.name}")

    def excuse(self, name: str) -> None:
        """The failure of this party no longer ends waits for others."""
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
        owner: str,
        helper: str,
        dealer: str,
        agreed: Agreed,
        disclosures: Mapping[str, Disclosure],
        *,
        lasting: bool = False,
    ) -> Hidden:
        """This party's part in features that ``owner`` multiplies by and nobody sees.

        All parties call it in step, for each owner. ``disclosures`` has one entry per kind of
        message (`hidden_features.STEPS`). Each call has seeds and pads of its own. ``lasting``: the
        helper counts what it opens over all runs that share its keeper.
        """
        return HiddenFeatures(
            *self._hiding(Roles(owner, helper, dealer, self.parties), disclosures["keys"]),
            agreed,
            lambda step: self._mesh.under(disclosures[step]),
            KeptTally(self.keeper, owner) if lasting and self.keeper is not None else None,
        )

    def sealed_features(
        self,
        owner: str,
        helper: str,
        dealer: str,
        agreed: AgreedSealed,
        disclosures: Mapping[str, Disclosure],
    ) -> Sealed:
        """This party's part in features and vectors that ``owner`` and ``helper`` only share.

        As `hidden_features`, with `sealed_features.STEPS`.
        """
        return SealedFeatures(
            *self._hiding(Roles(owner, helper, dealer, self.parties), disclosures["keys"]),
            agreed,
            lambda step: self._mesh.under(disclosures[step]),
        )

    def _hiding(
        self, roles: Roles, disclosure: Disclosure
    ) -> tuple[Mesh, PairKeys, Roles, Dealing | None]:
        """What a run of hidden phases needs; its number sets its seeds and pads apart."""
        number = self._hidden[roles.owner] = self._hidden.get(roles.owner, -1) + 1
        roles = replace(roles, session=str(number))
        if self.name not in roles.names:
            return self._mesh, self._keys, roles, None
        # Taken out: what was prepared serves one run.
        stock, self._stock = self._stock, None
        with self._mesh.under(disclosure):
            return self._mesh, self._keys, roles, Dealing(self._mesh, self._keys, roles, stock)

    def intersection(
        self,
        group: tuple[str, ...],
        ids: Sequence[bytes],
        disclosures: Mapping[str, Disclosure],
    ) -> Intersection:
        """This party's part in finding the ids that all of ``group`` have; its first leads.

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

    def _as_sent(self, disclosure: Disclosure) -> Disclosure:
        """Without masks a sum shows every summand to its receiver, and is booked as open."""
        if self._masking is not None:
            return disclosure
        learns = f"not masked, each party's own numbers are read: {disclosure.learns}"
        return replace(disclosure, learns=learns, masked=False)

    def _sum(self, group: tuple[str, ...], purpose: str) -> PaddedSum | TwoTreesSum | OpenSum:
        key = (group, purpose)
        if key not in self._sums:
            if self._masking is None:
                self._sums[key] = OpenSum(self._mesh, group, purpose)
            elif self._masking == "pads":
                self._sums[key] = PaddedSum(self._mesh, self._keys, group, purpose, self._shape)
            else:
                self._sums[key] = TwoTreesSum(self._mesh, prg.fresh_key(), group, purpose)
        return self._sums[key]


def digest(settings: msgspec.Struct) -> str:
    """The SHA-256 of settings in canonical form: what all parties of a job must share."""
    return hashlib.sha256(msgspec.json.encode(settings, order="sorted")).hexdigest()
