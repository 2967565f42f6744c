"""Running an intersection among threads on a local mesh, with everything that travelled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.running import Outcome, run
from tests.secure.meddling import Wire
from vertikal.mesh import RecordingMesh, Tape, local_meshes
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree
from vertikal.secure.psi.intersection import Intersection


@dataclass
class Session:
    """Rows and digest by party, all frames, and each party's part as it was left."""

    outcome: Outcome
    tape: Tape = field(repr=False)
    parts: dict[str, Intersection] = field(default_factory=dict)

    @property
    def rows(self) -> dict[str, list[int]]:
        return {name: rows.tolist() for name, (rows, _) in self.outcome.unwrap().items()}

    @property
    def digests(self) -> set[bytes]:
        return {digest for _, digest in self.outcome.unwrap().values()}


def intersect(
    sets: Mapping[str, list[bytes]],
    *,
    least: int | Mapping[str, int] = 1,
    most: Mapping[str, Mapping[str, int]] | None = None,
    order_key: bytes | None = None,
    deadline: float = 30.0,
    meddle: Mapping[str, Callable[[Intersection], None]] | None = None,
    wires: Mapping[str, Wire] | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Session:
    """Intersect the sets; the first party leads.

    ``most`` are the ids that a party takes of each other one. ``meddle`` changes a party's part
    before it begins, ``wires`` its end of the mesh.
    """
    tape, parts = Tape(), {}
    group = tuple(sets)

    def work(mesh: Any) -> Any:
        keys = agree(mesh, prg.fresh_key(), job="job", version="1", settings_digest="s", rows=0)
        order = order_key or prg.fresh_key()
        part = Intersection(
            mesh, keys, group, sets[mesh.me], "0", order, lambda _: nullcontext(), advance
        )
        parts[mesh.me] = part
        if meddle and mesh.me in meddle:
            meddle[mesh.me](part)
        fewest = least if isinstance(least, int) else least[mesh.me]
        part.compare_sizes(fewest, (most or {}).get(mesh.me))
        part.pass_round()
        part.gather()
        rows = part.spread()
        return rows, part.check(rows)

    ends = local_meshes(group, deadline)
    taped = {name: RecordingMesh(end, tape) for name, end in ends.items()}
    taped |= {name: wire(taped[name]) for name, wire in (wires or {}).items()}
    outcome = run(taped, work)
    return Session(outcome, tape, parts)


def ids(numbers: Any) -> list[bytes]:
    return [f"person {number}".encode() for number in numbers]
