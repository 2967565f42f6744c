"""Masking by one-time pads between pairs of parties, and their unmasking in the sum (the default).

Each pair expands its key to a pad; the party whose name comes first adds it, the other subtracts
it. All pads cancel in the sum, and each summand in transit is uniform in the ring whatever the
data, since it carries at least one pad that its reader does not know. Up to q − 2 colluding parties
learn the sum of the rest and nothing else. No extra round.

With three parties, in Z_256, and pads ab = 200, ac = 17, bc = 90:

    a holds 5, sends 5 + 200 + 17 = 222
    b holds 6, sends 6 − 200 + 90 = 152
    c holds 7, has   7 − 17 − 90  = 156;   222 + 152 + 156 = 18 = 5 + 6 + 7 (mod 256)
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError, PadReused
from vertikal.mesh.collectives import SHAPES, reduce
from vertikal.mesh.interface import Mesh
from vertikal.reused_memory import reused_memory
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.keys.keystream import TILE, Keystream
from vertikal.secure.keys.prg import encode_texts

Array = npt.NDArray[Any]


class OneTimePad:
    """One pad of one pair, for one sum or message. It is used once; afterwards it is spent."""

    def __init__(self, key: bytes, number: int, sign: int, skip: int = 0) -> None:
        self._stream = Keystream(key, number, skip)
        self._subtract = sign < 0
        self._spent = False

    def apply(self, values: Array) -> None:
        """Add the pad to ``values``, or subtract it, in place."""
        apply_all([self], values)

    def encipher(self, source: Array, out: Array) -> None:
        """Write ``source`` under the pad to ``out``, bit by bit; the other end takes it off so.

        Nothing can be summed under it. Both are equally long, and may be the same.
        """
        given, to = (_flat(one).view(np.uint8).data for one in (source, out))
        self.spend()
        if out.size:
            self._stream.encipher(given, to)

    def spend(self) -> None:
        """Mark the pad as used; a second time is refused."""
        if self._spent:
            raise PadReused("this pad has been applied already; a pad hides one message only")
        self._spent = True

    def write(self, part: Array) -> None:
        """Write the next elements of the pad, or what subtracts them, to ``part``."""
        self._stream.fill(part.view(np.uint8).data)
        if self._subtract:
            np.negative(part, out=part)

    def onto(self, part: Array, room: Array) -> None:
        """Apply the next elements of the pad to ``part``, by way of ``room``."""
        self._stream.fill(room.view(np.uint8).data)
        (np.subtract if self._subtract else np.add)(part, room, out=part)


def apply_all(pads: Sequence[OneTimePad], values: Array, *, write: bool = False) -> None:
    """Apply several pads in place, tile by tile, so that a tile stays in the cache for all.

    With ``write`` their sum takes the place of what is in ``values``.
    """
    flat = _flat(values)
    for pad in pads:
        pad.spend()
    first, others = (pads[:1], pads[1:]) if write else ((), pads)
    if write and not pads:
        flat[...] = 0
    room = reused_memory.empty((min(flat.size, TILE // flat.itemsize),), flat.dtype)
    for start in range(0, flat.size, room.size or 1):
        part = flat[start : start + room.size]
        for pad in first:
            pad.write(part)
        for pad in others:
            pad.onto(part, room[: part.size])


def _flat(values: Array) -> Array:
    """Return the entries one after the other, in the same memory."""
    if values.size and not values.flags.c_contiguous:
        raise InputError.of("values", "a contiguous array", f"strides {values.strides}")
    return values.reshape(-1)


@dataclass(frozen=True, repr=False)
class SumPads:
    """The pads of one sum, one for each other party, for whatever process computes its elements.

    A party with workers sends them there, and each masks the elements that it computed. Where the
    one process that took the pads sends to other parties, it sends once (`PaddedSum.finish` refuses
    a second time), and a worker that takes a lost one's place may mask the same rows again. Where
    workers send by links of their own, nobody knows what a lost one had sent: its sum is done again
    with pads of other keys.
    """

    pads: tuple[tuple[bytes, int, int], ...]  # key, number, sign
    skip: int = 0  # bytes of each pad that belong to elements before these

    def __call__(self, values: Array) -> None:
        apply_all(self._unspent(), values)

    def write(self, out: Array) -> None:
        """Write the sum of the pads to ``out``; elements that are added to it are masked."""
        apply_all(self._unspent(), out, write=True)

    def _unspent(self) -> list[OneTimePad]:
        # One that is added comes first, where there is one: it need not be negated.
        pads = sorted(self.pads, key=lambda one: -one[2])
        return [OneTimePad(*one, self.skip) for one in pads]

    def after(self, size: int) -> SumPads:
        """Return the pads of the elements that follow the first ``size`` bytes."""
        return SumPads(self.pads, self.skip + size)


@dataclass
class PendingSum:
    """A sum that has begun: its pads are taken, and its elements not yet sent."""

    mask: SumPads
    tag: str
    sent: bool = False

    def spend(self) -> None:
        """Mark the sum as sent; a second time is refused."""
        if self.sent:
            raise PadReused("this sum has been sent already; its pads hide one message only")
        self.sent = True


class PadSequence:
    """All pads of one pair for one purpose, each handed out once.

    The number of the next pad is private, only grows, and cannot be set; the object refuses to be
    copied or serialised, since a copy would hand out the same pads again. Keys are fresh in each
    run (`agreement`), so a new run cannot repeat a pad either.
    """

    def __init__(self, keys: PairKeys, peer: str, *purpose: str) -> None:
        self._key = keys.claim(peer, "pads", *purpose)
        self._sign = 1 if keys.me < peer else -1
        self._next = 0
        self._lock = threading.Lock()

    def take(self) -> OneTimePad:
        """The next pad."""
        return OneTimePad(*self.hand_out())

    def hand_out(self) -> tuple[bytes, int, int]:
        """Key, number and sign of the next pad, for another process of this party."""
        with self._lock:
            number = self._next
            self._next += 1
        return self._key, number, self._sign

    def _refuse(self, *_: object) -> NoReturn:
        raise PadReused("a sequence of pads cannot be copied: a copy would hand out its pads again")

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _refuse


def group_name(group: tuple[str, ...]) -> str:
    """Make a short name of a group for tags: groups must not read each other's messages."""
    return hashlib.sha256(encode_texts(*group)).hexdigest()[:8]


def summable(values: Array, to: str, group: tuple[str, ...], *, written: bool = True) -> Array:
    """Return ``values`` so that they can be masked in place, or only sent if not ``written``.

    Refuse what cannot be summed.
    """
    if values.dtype.kind != "u":
        raise InputError.of("values", "ring elements (unsigned integers)", str(values.dtype))
    if to not in group:
        raise InputError.of("to", f"one of the summing parties {list(group)}", to)
    # Asked for a dtype that is equal but not the same object, numpy answers with another array.
    native = values.dtype if values.dtype.isnative else values.dtype.newbyteorder("=")
    return np.require(values, native, ["C", "W"] if written else ["C"])


class PaddedSum:
    """Secure sums among a fixed group of parties for one purpose."""

    def __init__(
        self, mesh: Mesh, keys: PairKeys, group: tuple[str, ...], purpose: str, shape: str = "star"
    ) -> None:
        self._mesh = mesh
        self._group = group
        self._purpose = purpose
        self._shape = SHAPES[shape]
        self._pads = {
            peer: PadSequence(keys, peer, purpose, *group) for peer in group if peer != mesh.me
        }
        self._rounds = 0

    def sum(self, values: Array, to: str) -> Array | None:
        """Sum everybody's ``values`` (ring elements) at party ``to``; None at the others.

        ``values`` is overwritten. Its dtype is the ring.
        """
        values = summable(values, to, self._group)
        pending = self.begin()
        pending.mask(values)
        return self.finish(pending, values, to)

    def begin(self) -> PendingSum:
        """Take the pads of the next sum; several may have begun, and end in any order."""
        pads = tuple(sequence.hand_out() for sequence in self._pads.values())
        tag = f"sum/{self._purpose}/{group_name(self._group)}/{self._rounds}"
        self._rounds += 1
        return PendingSum(SumPads(pads), tag)

    def finish(
        self, pending: PendingSum, masked: Array, to: str, apart: Collection[str] = ()
    ) -> Array | None:
        """Sum everybody's elements, which are masked already, at party ``to``.

        At ``to`` they contain those of the parties ``apart`` already, whose workers sent them by
        links of their own.
        """
        pending.spend()
        values = summable(masked, to, self._group, written=False)
        order = (to, *(name for name in self._group if name != to and name not in apart))
        return reduce(self._mesh, values, self._shape(order), pending.tag)
