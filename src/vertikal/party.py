"""The party: all that a program may see.

A program is one function that every party runs. It gets a `Party`, branches on `has_labels` where
roles differ, and returns its shard. Sockets, keys, files and other parties' columns are out of its
reach, and nothing leaves the party except through the methods here, each of which books it in the
ledger.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.clock import Clock, Observer, Silent
from vertikal.data.tables import Table
from vertikal.errors import InputError, RingError, SecrecyError
from vertikal.mesh.collectives import SHAPES, broadcast
from vertikal.mesh.interface import Mesh, Payload
from vertikal.mesh.wire import Frame
from vertikal.privacy.ledger import Disclosure, Ledger
from vertikal.secure import prg
from vertikal.secure.agreement import agree
from vertikal.secure.hidden_features import Agreed, HiddenFeatures
from vertikal.secure.intersection import Intersection
from vertikal.secure.lattice_gaussian import DISTANCE as NOISE_DISTANCE
from vertikal.secure.lattice_gaussian import LOG_RATIO as NOISE_LOG_RATIO
from vertikal.secure.lattice_gaussian import LatticeGaussian, lattice_for
from vertikal.secure.open_sum import OpenSum
from vertikal.secure.pads import PaddedSum, group_name
from vertikal.secure.roles import Roles
from vertikal.secure.two_trees import TwoTreesSum

Array: TypeAlias = npt.NDArray[Any]
Hidden: TypeAlias = HiddenFeatures
HiddenBlock: TypeAlias = Agreed

__all__ = [
    "MASKINGS",
    "NOISE_DISTANCE",
    "NOISE_LOG_RATIO",
    "Hidden",
    "HiddenBlock",
    "Keeper",
    "Labels",
    "Party",
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


class Keeper(Protocol):
    """Where a party keeps finished blocks of a program, to go on from after a restart."""

    def finished(self, name: str) -> int:
        """How many blocks of this name are at hand, from the first on."""

    def keep(self, name: str, number: int, block: Array) -> None: ...

    def restore(self, name: str, number: int, into: Array) -> None: ...


class _BookedMesh(Mesh):
    """The mesh as a party uses it: every frame is booked under the disclosure in force."""

    def __init__(self, inner: Mesh, ledger: Ledger) -> None:
        super().__init__(inner.me, inner.parties, inner.deadline)
        self._inner = inner
        self._ledger = ledger
        # By thread: a party may serve several label parties at once.
        self._local = threading.local()

    @property
    def _current(self) -> Disclosure | None:
        return getattr(self._local, "disclosure", None)

    @_current.setter
    def _current(self, disclosure: Disclosure | None) -> None:
        self._local.disclosure = disclosure

    @contextmanager
    def under(self, disclosure: Disclosure) -> Iterator[None]:
        before, self._current = self._current, disclosure
        try:
            yield
        finally:
            self._current = before

    def _put(self, to: str, frame: Frame) -> None:
        if self._current is None:
            raise SecrecyError(
                f"{self.me}: {frame.header.tag!r} has no entry in the ledger; not sent"
            )
        self._inner._put(to, frame)
        self._ledger.book(self.me, to, self._current, frame.size)

    def _get(self, from_: str, tag: str, timeout: float) -> Frame:
        return self._inner._get(from_, tag, timeout)

    def close(self) -> None:
        self._inner.close()

    def fail(self, reason: str) -> None:
        self._inner.fail(reason)


class Party:
    """One party in one run of one job.

    ``secret`` is this party's own 32 bytes, from which its private part of the model is drawn;
    ``labels`` is None at a feature party. ``job`` names the run, ``settings`` is the digest all
    parties must share. Either all parties have a ``keeper`` or none.
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
        keeper: Keeper | None = None,
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
        self._mesh = _BookedMesh(mesh, self.ledger)
        self._secret = secret
        self._masking = masking
        self._shape = shape
        self._sums: dict[tuple[tuple[str, ...], str], PaddedSum | TwoTreesSum | OpenSum] = {}
        self._broadcasts: dict[tuple[str, ...], int] = {}
        self._hidden: dict[str, int] = {}
        self._intersections = 0
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
                return summation.phase_sum(phases, offsets, to, self._kept(to))
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
        number = self._broadcasts.get(group, 0)
        self._broadcasts[group] = number + 1
        tag = f"broadcast/{disclosure.name}/{group_name(group)}/{number}"
        with self._mesh.under(disclosure):
            return broadcast(self._mesh, payload, SHAPES["tree"](group), tag)

    def hidden_features(
        self,
        owner: str,
        helper: str,
        dealer: str,
        agreed: Agreed,
        disclosures: Mapping[str, Disclosure],
    ) -> Hidden:
        """This party's part in features that ``owner`` multiplies by and nobody sees.

        All parties call it in step, for each owner. ``disclosures`` has one entry per kind of
        message (`hidden_features.STEPS`). Each call has seeds and pads of its own.
        """
        number = self._hidden.get(owner, 0)
        self._hidden[owner] = number + 1
        roles = Roles(owner, helper, dealer, self.parties, str(number))
        return HiddenFeatures(
            self._mesh,
            self._keys,
            roles,
            agreed,
            lambda step: self._mesh.under(disclosures[step]),
        )

    def intersection(
        self,
        group: tuple[str, ...],
        ids: Sequence[bytes],
        disclosures: Mapping[str, Disclosure],
    ) -> Intersection:
        """This party's part in finding the ids that all of ``group`` have; its first leads.

        ``disclosures`` has one entry per kind of message (`intersection.STEPS`).
        """
        number = self._intersections
        self._intersections += 1
        return Intersection(
            self._mesh,
            self._keys,
            group,
            ids,
            str(number),
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

    def _kept(self, to: str) -> str:
        """FDSKL Algorithm 3, line 6: whose offset stays; the same for all rows and runs."""
        others = [name for name in self.parties if name != to]
        coin = hashlib.sha256(prg.encode_words("kept", to, *self.parties)).digest()
        return others[int.from_bytes(coin[:8], "big") % len(others)]


def digest(settings: msgspec.Struct) -> str:
    """The SHA-256 of settings in canonical form: what all parties of a job must share."""
    return hashlib.sha256(msgspec.json.encode(settings, order="sorted")).hexdigest()
