"""Running sealed features among real roles on a local mesh, and seeing what each of them saw."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.conformance.running import Outcome, run
from tests.secure.hidden.hidden_run import ROLES, Seen, add_blocks, reading
from tests.secure.kept import matrices_in
from tests.secure.meddling import Wire
from vertikal.mesh import RecordingMesh, Tape, local_meshes
from vertikal.secure.hidden.dealing import Dealing
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree
from vertikal.secure.sealed.sealed_features import SealedBlock, SealedFeatures


@dataclass
class Session:
    """One run: what each role's program returned, what each role saw, and all frames."""

    outcome: Outcome
    seen: Seen
    tape: Tape = field(repr=False)
    parts: dict[str, SealedFeatures] = field(default_factory=dict)

    def total(self) -> np.ndarray:
        """The two shares that label party and helper ended with, added up, as signed numbers."""
        results = self.outcome.unwrap()
        return (results["ada"] + results["hal"]).view(np.int64)


def seal(
    phases: Mapping[str, np.ndarray],
    program: Callable[[SealedFeatures], Any],
    *,
    roles: Roles = ROLES,
    height: int = 64,
    deadline: float = 20.0,
    meddle: Mapping[str, Callable[[SealedFeatures], None]] | None = None,
    wires: Mapping[str, Wire] | None = None,
    prepared: Mapping[str, Any] = {},
    together: Collection[str] = (),
    **agreed: Any,
) -> Session:
    """Seal ``phases`` by party and let the three roles run ``program`` on their shares.

    ``meddle`` changes a party's part before it begins, ``wires`` its end of the mesh; parties
    ``together`` add all blocks at the same time.
    """
    first = next(iter(phases.values()))
    rows, width = first.shape
    block = SealedBlock(rows, width, 8 * first.itemsize, **({"outputs": 1} | agreed))
    tape, parts = Tape(), {}

    def work(mesh: Any) -> Any:
        keys = agree(mesh, prg.fresh_key(), job="job", version="1", settings_digest="s", rows=rows)
        dealing = None
        if mesh.me in roles.names:
            dealing = Dealing(mesh, keys, roles, prepared.get(mesh.me))
        part = SealedFeatures(mesh, keys, roles, dealing, block, lambda _: nullcontext())
        parts[mesh.me] = part
        if meddle and mesh.me in meddle:
            meddle[mesh.me](part)
        add_blocks(part, phases[mesh.me], height, together=mesh.me in together)
        return program(part) if part.has_role else None

    ends = local_meshes(roles.parties, deadline)
    with reading() as seen:
        taped = {name: RecordingMesh(end, tape) for name, end in ends.items()}
        taped |= {name: wire(taped[name]) for name, wire in (wires or {}).items()}
        outcome = run(taped, work)
    return Session(outcome, seen, tape, parts)


def kept(session: Session) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The matrices that A and H keep: the one that both have, A's own, and H's own."""
    agreed = session.parts["ada"].agreed
    shape = agreed.rows, agreed.features
    ada, hal = (matrices_in(session.parts[name], shape) for name in ("ada", "hal"))
    (common,) = [one for one in ada if any(np.array_equal(one, other) for other in hal)]
    (own,), (helpers,) = (
        [one for one in some if not np.array_equal(one, common)] for some in (ada, hal)
    )
    return common, own, helpers


def split(values: np.ndarray, part: SealedFeatures, seed: int = 9) -> np.ndarray:
    """A role's share of public test numbers: uniform at A, the rest at H, zeros at the dealer."""
    share = np.random.default_rng(seed).integers(0, 2**63, values.shape, np.uint64)
    if part.is_dealer:
        return np.zeros(values.shape, np.uint64)
    return share if part.is_label_party else values.astype(np.int64).view(np.uint64) - share
