"""Running hidden phases among real roles on a local mesh, and seeing what each of them saw."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from tests.conformance.running import Outcome, run
from tests.secure.meddling import Wire
from vertikal.mesh import RecordingMesh, Tape, local_meshes
from vertikal.secure.hidden.dealing import Dealing
from vertikal.secure.hidden.hidden_features import HiddenBlock, HiddenFeatures
from vertikal.secure.hidden.openings import Limits
from vertikal.secure.hidden.padded_link import PaddedLink
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree

NAMES = ("ada", "hal", "sue", "tim")
ROLES = Roles("ada", "hal", "tim", NAMES)

Seen = dict[str, dict[str, list[np.ndarray]]]
"""Arrays as a receiver reads them, its pads taken off: receiver → step → arrays."""


@contextmanager
def reading() -> Iterator[Seen]:
    """Look over every receiver's shoulder."""
    seen: Seen = defaultdict(lambda: defaultdict(list))
    original = PaddedLink.recv

    def recv(self: PaddedLink, step: str, *args: Any, **options: Any) -> np.ndarray:
        values = original(self, step, *args, **options)
        if step != "key":  # from the operating system, and too short to look at: see test_dealing
            seen[self.me][f"{self.peer}: {step}"].append(np.array(values))
        return values

    with mock.patch.object(PaddedLink, "recv", recv):
        yield seen


@dataclass
class Session:
    """One run: what the label party's program returned, what each role saw, and all frames."""

    outcome: Outcome
    seen: Seen
    tape: Tape = field(repr=False)
    parts: dict[str, HiddenFeatures] = field(default_factory=dict)

    @property
    def result(self) -> Any:
        return self.outcome.unwrap()["ada"]


def hide(
    phases: Mapping[str, np.ndarray],
    program: Callable[[HiddenFeatures], Any],
    *,
    bits: int = 64,
    roles: Roles = ROLES,
    passes: int = 100,
    fewest: int = 0,
    value_bits: int = 28,
    gradients: int = 10**6,
    gradient_bits: int = 28,
    bits_per_row: int = 1000,
    height: int = 64,
    pairs: bool = False,
    deadline: float = 20.0,
    meddle: Mapping[str, Callable[[HiddenFeatures], None]] | None = None,
    wires: Mapping[str, Wire] | None = None,
    together: Collection[str] = (),
) -> Session:
    """Hide ``phases`` by party, let the label party run ``program`` and the others serve.

    ``meddle`` changes a party's part before it begins, ``wires`` its end of the mesh; parties
    ``together`` add all blocks at the same time.
    """
    first = next(iter(phases.values()))
    rows, width = first.shape
    limits = Limits(passes, fewest, gradients, value_bits, gradient_bits, bits_per_row)
    agreed = HiddenBlock(rows, width, 8 * first.itemsize, bits, limits, pairs)
    tape = Tape()
    parts: dict[str, HiddenFeatures] = {}

    def work(mesh: Any) -> Any:
        keys = agree(mesh, prg.fresh_key(), job="job", version="1", settings_digest="s", rows=rows)
        dealing = Dealing(mesh, keys, roles) if mesh.me in roles.names else None
        part = HiddenFeatures(mesh, keys, roles, dealing, agreed, lambda _: nullcontext())
        parts[mesh.me] = part
        if meddle and mesh.me in meddle:
            meddle[mesh.me](part)
        add_blocks(part, phases[mesh.me], height, together=mesh.me in together)
        if mesh.me == roles.label_party:
            result = program(part)
            part.finish()
            return result
        if mesh.me in roles.names:
            part.serve()
        return None

    ends = local_meshes(roles.parties, deadline)
    with reading() as seen:
        taped = {name: RecordingMesh(end, tape) for name, end in ends.items()}
        taped |= {name: wire(taped[name]) for name, wire in (wires or {}).items()}
        outcome = run(taped, work)
    return Session(outcome, seen, tape, parts)


def add_blocks(part: Any, phases: np.ndarray, height: int, *, together: bool = False) -> None:
    """Add all rows in blocks: in order, or all at the same time, the last ones first."""

    def add(start: int) -> None:
        here = slice(start, min(start + height, len(phases)))
        part.add(here, phases[here].copy())

    starts = range(0, len(phases), height)
    if not together:
        for start in starts:
            add(start)
        return
    with ThreadPoolExecutor(len(starts)) as pool:
        for _ in pool.map(add, reversed(starts)):
            pass


def draw_phases(
    rows: int, width: int, seed: int = 0, dtype: str = "uint8", names: tuple[str, ...] = NAMES
) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    top = np.iinfo(dtype).max
    return {
        name: generator.integers(0, top, (rows, width), dtype=dtype, endpoint=True)
        for name in names
    }


def cosines(phases: Mapping[str, np.ndarray]) -> np.ndarray:
    first = next(iter(phases.values()))
    total = np.add.reduce(list(phases.values()), dtype=first.dtype)
    return np.cos(total * (2 * np.pi / 256**first.itemsize))


def pairs_of(phases: Mapping[str, np.ndarray]) -> np.ndarray:
    """Cosines of all directions, then their sines: (rows, 2D)."""
    first = next(iter(phases.values()))
    total = np.add.reduce(list(phases.values()), dtype=first.dtype)
    angles = total * (2 * np.pi / 256**first.itemsize)
    return np.hstack((np.cos(angles), np.sin(angles)))
