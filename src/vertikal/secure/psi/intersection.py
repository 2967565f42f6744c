"""Private set intersection among any number of parties; all of them semi-honest.

Every party but the leader has a secret exponent k_i and thereby a private function of ids,
F_i(id) = hash(k_i·P(id), id), where P hashes to the group. Five steps, in this order at everybody:

1. `compare_sizes`: how many ids each party brings, rounded up, and the leader's fresh salt.
2. `pass_round`: the leader sends r·P(id) for its ids, shuffled and filled up with invented ones;
   each other party multiplies by k_i; the leader takes r off and has F_i of its own ids for all i.
3. `gather`: each other party stores F_i(id) under its own ids in an oblivious table. The **sum** of
   these tables, a secure sum that only the leader learns, decodes to Σ_i F_i(id) exactly for the
   ids that all have. An id that one party lacks decodes to noise, whoever else has it.
4. `spread`: the leader puts the common ids into an order that only a secret of its own explains,
   and tells each party another half of F_i of each. By these a party finds its rows.
5. `check`: all compare the number of common ids and a digest of them in their order.

So among three or more parties nobody sees who has what in common with whom: there is nothing that
could be compared across two of the sets. What an id is to those who lack it is a uniform number.

The multi-party form (functions of ids, tables, shares that only cancel for common ids) is that of
Kolesnikov, Matania, Pinkas, Rosulek and Trieu, CCS 2017; secure sums take the place of shares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.errors import AgreementError, InputError, MeshError, SecrecyError
from vertikal.mesh.interface import Mesh
from vertikal.records import convert
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.psi.group import POINT_BYTES, CurveThreads, Exponent, hash_to_points, workers
from vertikal.secure.psi.oblivious_table import WORDS, decode, encode, key_words, slots_for
from vertikal.secure.sums.pads import PaddedSum

Array: TypeAlias = npt.NDArray[Any]
Booked: TypeAlias = Callable[[str], AbstractContextManager[None]]
"""Opens the ledger's entry for one of `STEPS`."""

STEPS = ("sizes", "blinded", "evaluated", "tables", "matches", "check")
"""The kinds of messages."""

CHUNK = 4096
"""Ids of the largest set that are worked on between two messages: no wait is for more."""
AHEAD = 2
"""Messages that the leader is ahead of the answers it has taken."""
SPAN = 1 << 16
"""Slots of the table in one secure sum, and labels in one message."""
MOST = 1 << 27
"""Ids of one party: more would not fit into memory here."""
LEAST_CAPACITY = 64
LABEL_BYTES = 16


class Sizes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """First message of each party to the others. Only the leader's ``salt`` is used."""

    capacity: Annotated[int, msgspec.Meta(ge=LEAST_CAPACITY, le=MOST)]
    least: Annotated[int, msgspec.Meta(ge=1, le=MOST)]
    salt: Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]


class FoundRows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Last message of each party to the others."""

    matched: int
    digest: bytes


def capacity_of(count: int) -> int:
    """Round ``count`` up to five binary digits, at least 64; the others learn no more of it."""
    step = 1 << max(0, count.bit_length() - 5)
    return max(LEAST_CAPACITY, -(-count // step) * step)


class Intersection:
    """One party's part in one intersection of sets of distinct ids, each id some bytes.

    The first of ``group`` leads. ``session`` tells intersections under the same keys apart. The
    leader's ``order_key``, a secret, decides the order of the common ids: the same key gives the
    same order. ``advance`` is told how many ids of the largest set, in rounded numbers, are done.
    """

    def __init__(
        self,
        mesh: Mesh,
        keys: PairKeys,
        group: tuple[str, ...],
        ids: Sequence[bytes],
        session: str,
        order_key: bytes,
        booked: Booked,
        advance: Callable[[int], None],
    ) -> None:
        if mesh.me not in group or len(group) < 2:
            raise InputError.of("group", f"two parties at least, {mesh.me!r} among them", group)
        if not ids or len(set(ids)) != len(ids):
            raise InputError.of("ids", "at least one, all distinct", f"{len(ids)} ids")
        self._mesh, self._group, self._ids = mesh, group, list(ids)
        self._leader = group[0]
        self._peers = tuple(name for name in group if name != mesh.me)
        self._tag = f"alignment/{session}"
        self._order_key, self._booked, self._advance = order_key, booked, advance
        self._sum = PaddedSum(mesh, keys, group, f"alignment {session}")
        self._exponent = Exponent()
        self._salt, self._least = b"", 1
        self._capacities: dict[str, int] = {}
        # F_i of the own ids, (n, 32): at the leader for every other party i, else one's own F only.
        self._values: dict[str, Array] = {}
        self._common = np.empty(0, np.int64)

    @property
    def leads(self) -> bool:
        return self._mesh.me == self._leader

    @property
    def largest(self) -> int:
        """The largest set of ids, in rounded numbers."""
        return max(self._capacities.values())

    def compare_sizes(self, least: int, most: Mapping[str, int] | None = None) -> None:
        """Tell all others how many ids come, rounded up; fewer than ``least`` common ones stop.

        ``most`` are the ids that each other party may bring; by default any number. Whoever brings
        more gets nothing but this party's own number: AgreementError.
        """
        mine = Sizes(capacity_of(len(self._ids)), least, prg.fresh_key())
        theirs = self._exchange("sizes", mine)
        for name in self._peers:
            allowed = capacity_of((most or {}).get(name, MOST))
            if theirs[name].capacity > allowed:
                raise AgreementError(
                    f"{self._mesh.me}: {name} brings up to {theirs[name].capacity} ids to the "
                    f"alignment, {allowed} at most were approved; nothing was answered"
                )
        self._capacities = {name: sizes.capacity for name, sizes in theirs.items()}
        self._least = max(sizes.least for sizes in theirs.values())
        self._salt = theirs[self._leader].salt

    def pass_round(self) -> None:
        """Let each party learn F of its own ids; the leader learns every party's F of its ids."""
        with workers() as threads:
            if self.leads:
                self._ask(threads)
            else:
                self._answer(threads)

    def _ask(self, threads: CurveThreads) -> None:
        order = prg.shuffled(self._capacities[self._leader])
        ids = [*self._ids, *(prg.fresh_key() for _ in range(len(order) - len(self._ids)))]
        found = {peer: np.empty((len(ids), POINT_BYTES), np.uint8) for peer in self._peers}
        parts = [order[span] for span in self._stretches(len(order))]
        for number in range(len(parts) + AHEAD):
            if number < len(parts):
                points = self._points([ids[i] for i in parts[number]], threads)
                blinded = self._exponent.times(points, threads)
                with self._booked("blinded"):
                    for peer in self._peers:
                        self._mesh.send(peer, f"{self._tag}/blinded", blinded)
            if number >= AHEAD:
                rows = parts[number - AHEAD]
                for peer in self._peers:
                    answer = self._points_of(peer, "evaluated", len(rows))
                    found[peer][rows] = self._exponent.undo(answer, threads)
                self._tell_progress(number - AHEAD)
        self._values = {peer: self._function(peer, points) for peer, points in found.items()}

    def _answer(self, threads: CurveThreads) -> None:
        asked = self._stretches(self._capacities[self._leader])
        own = []
        spans = zip(asked, self._stretches(len(self._ids)), strict=True)
        for number, (theirs, mine) in enumerate(spans):
            points = self._points_of(self._leader, "blinded", theirs.stop - theirs.start)
            with self._booked("evaluated"):
                answer = self._exponent.times(points, threads)
                self._mesh.send(self._leader, f"{self._tag}/evaluated", answer)
            # Own ids a stretch at a time, while the leader makes the next message.
            own.append(self._exponent.times(self._points(self._ids[mine], threads), threads))
            self._tell_progress(number)
        self._values = {self._mesh.me: self._function(self._mesh.me, np.concatenate(own))}

    def gather(self) -> None:
        """Let the leader learn from the sum of the tables which of its ids all parties have."""
        slots = slots_for(self.largest)
        words = key_words(self._ids, self._domain("slots"))
        if self.leads:
            table = np.zeros((slots, WORDS), np.uint64)
        else:
            table = encode(words, _stored(self._values[self._mesh.me]), slots)
        with self._booked("tables"):
            for start in range(0, slots, SPAN):
                part = self._sum.sum(table[start : start + SPAN], self._leader)
                if part is not None:
                    table[start : start + SPAN] = part
        if self.leads:
            expected = np.zeros((len(self._ids), WORDS), np.uint64)
            for values in self._values.values():
                expected += _stored(values)
            self._common = np.flatnonzero((decode(table, words) == expected).all(axis=1))

    def spread(self) -> Array:
        """Find the own rows of the common ids, in the order that the leader has drawn."""
        if not self.leads:
            labels = self._labels()
            self._refuse_few(len(labels))
            return self._rows_of(labels)
        self._refuse_few(len(self._common))
        rows = np.array(sorted(self._common.tolist(), key=self._mark), np.int64)
        with self._booked("matches"):
            for peer, values in self._values.items():
                labels = _labels(values)[rows]
                # A message that is not full is the last.
                for start in range(0, len(labels) + 1, SPAN):
                    part = labels[start : start + SPAN]
                    self._mesh.send(peer, f"{self._tag}/matches", part)
        return rows

    def check(self, rows: Array) -> bytes:
        """Compare the common ids with all others, by number and digest; return the digest."""
        listed = hashlib.sha256(self._domain("check"))
        for row in rows:
            listed.update(hashlib.sha256(self._ids[row]).digest())
        mine = FoundRows(len(rows), listed.digest())
        for name, theirs in self._exchange("check", mine).items():
            if theirs != mine:
                raise AgreementError(
                    f"{self._mesh.me}: {mine.matched} ids are common here and {theirs.matched} at "
                    f"{name}, or in another order; nothing is aligned, run the alignment again"
                )
        return mine.digest

    def _stretches(self, count: int) -> list[slice]:
        """Cut ``count`` things into as many stretches as the largest set has chunks."""
        rounds = -(-self.largest // CHUNK)
        ends = [count * number // rounds for number in range(rounds + 1)]
        return [slice(*pair) for pair in pairwise(ends)]

    def _points(self, ids: Sequence[bytes], threads: CurveThreads) -> Array:
        return hash_to_points(ids, self._domain("points"), threads)

    def _domain(self, *purpose: str) -> bytes:
        return prg.encode_texts("alignment", *self._group, *purpose) + self._salt

    def _function(self, party: str, points: Array) -> Array:
        """F of ``party`` at the own ids, (n, 32), from their points multiplied by its exponent."""
        prefix = hashlib.sha256(self._domain("function", party)).digest()
        raw = points.tobytes()
        values = (
            hashlib.sha256(prefix + raw[row * POINT_BYTES : (row + 1) * POINT_BYTES] + one).digest()
            for row, one in enumerate(self._ids)
        )
        return np.frombuffer(b"".join(values), np.uint8).reshape(-1, 2 * LABEL_BYTES)

    def _mark(self, row: int) -> bytes:
        """Derive the mark of a row, by which the common ids are sorted."""
        return prg.derive_key(self._order_key, self._ids[row].hex())

    def _tell_progress(self, number: int) -> None:
        rounds = -(-self.largest // CHUNK)
        done = [self.largest * place // rounds for place in (number, number + 1)]
        self._advance(done[1] - done[0])

    def _refuse_few(self, matched: int) -> None:
        if matched < self._least:
            raise SecrecyError(
                f"{self._mesh.me}: {matched} ids are common to {', '.join(self._group)}, at least "
                f"{self._least} must be; compare how the ids are written, or lower the least number"
            )

    def _rows_of(self, labels: Array) -> Array:
        own = _labels(self._values[self._mesh.me])
        numbers = {label.tobytes(): row for row, label in enumerate(own)}
        try:
            return np.array([numbers.pop(label.tobytes()) for label in labels], np.int64)
        except KeyError:
            raise MeshError(
                f"{self._mesh.me}: {self._leader} named as common an id that is not here, or one "
                "id twice; nothing is aligned, run the alignment again"
            ) from None

    def _points_of(self, peer: str, step: str, count: int) -> Array:
        tag = f"{self._tag}/{step}"
        return self._mesh.recv_array(peer, tag, np.uint8, (count, POINT_BYTES))

    def _labels(self) -> Array:
        return np.concatenate(list(self._label_messages()))

    def _label_messages(self) -> Iterator[Array]:
        size = SPAN
        while size == SPAN:
            part = self._mesh.recv(self._leader, f"{self._tag}/matches")
            if not isinstance(part, np.ndarray) or part.dtype != np.uint8 or part.ndim != 2:
                raise MeshError(
                    f"{self._mesh.me}: {self._leader} sent something else than labels of ids"
                )
            size = len(part)
            yield part

    def _exchange(self, step: str, mine: Any) -> dict[str, Any]:
        """Tell the group ``mine`` under this step; return what each says, this party included."""
        tag = f"{self._tag}/{step}"
        with self._booked(step):
            for peer in self._peers:
                self._mesh.send(peer, tag, msgspec.structs.asdict(mine))
        told = {self._mesh.me: mine}
        for peer in self._peers:
            try:
                told[peer] = convert(self._mesh.recv(peer, tag), type(mine))
            except msgspec.ValidationError as error:
                raise MeshError(f"{self._mesh.me}: {step} of {peer}: {error}") from None
        return told


def _stored(values: Array) -> Array:
    """The half of F (n, 32) that goes into the table, as words (n, 2)."""
    return np.ascontiguousarray(values[:, :LABEL_BYTES]).view("<u8")


def _labels(values: Array) -> Array:
    """The other half (n, 16), by which the leader names ids."""
    return np.ascontiguousarray(values[:, LABEL_BYTES:])
