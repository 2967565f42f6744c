"""The list of secure sums. A new one adds a line to `SUMS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
import pytest

from tests.conformance.meshes import Ends
from tests.conformance.running import run
from vertikal.mesh import Mesh, Tape
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree
from vertikal.secure.sums.fdskl_algorithm3 import TwoTreesSum
from vertikal.secure.sums.pads import PaddedSum

PURPOSE = "test"
TAG = f"sum/{PURPOSE}/"
"""The beginning of the tags of all messages of a sum."""


class SecureSum(Protocol):
    def sum(self, values: np.ndarray, to: str) -> np.ndarray | None: ...


@dataclass(frozen=True)
class Kind:
    """One way to sum, the fewest parties that it serves, and whom it withstands.

    ``wiretap``: frames stay uniform to somebody who reads all of them, on whatever wire. The trees
    of FDSKL promise this to each single receiver only: the value with its mask goes one way, the
    mask another.
    """

    name: str
    fewest: int
    wiretap: bool
    build: Callable[[Mesh, tuple[str, ...]], SecureSum]


def padded(shape: str, mesh: Mesh, group: tuple[str, ...]) -> SecureSum:
    keys = agree(mesh, prg.fresh_key(), job="job", version="1", settings_digest="s", rows=1)
    return PaddedSum(mesh, keys, group, PURPOSE, shape)


def two_trees(mesh: Mesh, group: tuple[str, ...]) -> SecureSum:
    return TwoTreesSum(mesh, prg.fresh_key(), group, PURPOSE)


SUMS = [
    Kind("pads, star", 2, True, partial(padded, "star")),
    Kind("pads, tree", 2, True, partial(padded, "tree")),
    Kind("pads, cycle", 2, True, partial(padded, "cycle")),
    Kind("two trees", 3, False, two_trees),
]

PADDED = [kind for kind in SUMS if kind.name.startswith("pads")]

every_sum = pytest.mark.parametrize("kind", SUMS, ids=lambda kind: kind.name)
every_padded_sum = pytest.mark.parametrize("kind", PADDED, ids=lambda kind: kind.name)

Frames = dict[tuple[str, str, str], np.ndarray]
"""All arrays that travelled for one sum: (sender, receiver, which part of it) -> array."""


@dataclass
class Session:
    """A group of parties that have one secure sum and use it again and again."""

    ends: Ends
    group: tuple[str, ...]
    sums: dict[str, SecureSum] = field(default_factory=dict)

    @classmethod
    def begin(cls, kind: Kind, ends: Ends, group: Sequence[str] | None = None) -> Session:
        members = tuple(group or ends)
        return cls(ends, members, run(ends, lambda mesh: kind.build(mesh, members)).unwrap())

    def sum(self, values: dict[str, np.ndarray], to: str) -> dict[str, np.ndarray | None]:
        """One sum, started from copies of ``values``; what each party of the group got."""
        ends = {name: self.ends[name] for name in self.group}
        return run(ends, lambda mesh: self.sums[mesh.me].sum(values[mesh.me].copy(), to)).unwrap()

    def frames(self, tape: Tape, values: dict[str, np.ndarray], to: str) -> Frames:
        """All that travelled for one sum."""
        before = len(tape)
        self.sum(values, to)
        found: Frames = {}
        for frame in list(tape)[before:]:
            assert frame.header.tag.startswith(TAG)
            last = frame.header.tag.rpartition("/")[2]
            part = "" if last.isdigit() else last
            key = (frame.header.sender, frame.header.receiver, part)
            assert key not in found
            found[key] = np.asarray(frame.payload())
        return found


def views(kind: Kind, frames: Frames) -> list[list[tuple[str, str, str]]]:
    """The frames that one adversary sees, for each adversary that ``kind`` withstands."""
    keys = sorted(frames)
    if kind.wiretap:
        return [keys]
    readers = sorted({receiver for _, receiver, _ in keys})
    return [[key for key in keys if key[1] == reader] for reader in readers]
