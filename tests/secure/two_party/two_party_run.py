"""Running the protocol of two parties on a local mesh, and seeing what each of them saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np

from tests.conformance.running import run
from tests.secure.hidden.hidden_run import Session, add_blocks
from tests.secure.meddling import Wire
from vertikal.mesh import RecordingMesh, Tape, local_meshes
from vertikal.secure.hidden.hidden_features import HiddenBlock
from vertikal.secure.hidden.openings import Limits, Tally
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree
from vertikal.secure.two_party.roles import TwoRoles
from vertikal.secure.two_party.two_party_features import TwoPartyFeatures

NAMES = ("ada", "bob")
ROLES = TwoRoles("ada", "bob")


def hide_between_two(
    phases: Mapping[str, np.ndarray],
    program: Callable[[TwoPartyFeatures], Any],
    *,
    passes: int = 100,
    fewest: int = 0,
    value_bits: int = 14,
    gradients: int = 10**6,
    gradient_bits: int = 14,
    bits_per_row: int = 1000,
    height: int = 64,
    pairs: bool = False,
    deadline: float = 20.0,
    tally: Tally | None = None,
    wires: Mapping[str, Wire] | None = None,
) -> Session:
    """Hide ``phases`` by party, let the label party run ``program`` and the helper serve.

    ``wires`` change a party's end of the mesh.
    """
    first = next(iter(phases.values()))
    rows, width = first.shape
    limits = Limits(passes, fewest, gradients, value_bits, gradient_bits, bits_per_row)
    agreed = HiddenBlock(rows, width, 8 * first.itemsize, 32, limits, pairs)
    tape = Tape()
    parts: dict[str, Any] = {}

    def work(mesh: Any) -> Any:
        keys = agree(mesh, prg.fresh_key(), job="job", version="1", settings_digest="s", rows=rows)
        part = TwoPartyFeatures(mesh, keys, ROLES, agreed, lambda _: nullcontext(), tally)
        parts[mesh.me] = part
        add_blocks(part, phases[mesh.me], height)
        if mesh.me == ROLES.label_party:
            result = program(part)
            part.finish()
            return result
        return part.serve()

    ends = local_meshes(NAMES, deadline)
    taped = {name: RecordingMesh(end, tape) for name, end in ends.items()}
    taped |= {name: wire(taped[name]) for name, wire in (wires or {}).items()}
    return Session(run(taped, work), {}, tape, parts)
