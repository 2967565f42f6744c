"""The view of an honest but curious party after a real run, and nothing else, to be attacked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine import fdskl
from vertikal.algorithms.kernel_machine.phases import PhasePass
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.compute.open_operator import OpenOperator
from vertikal.data.tables import Table
from vertikal.estimators.simulation import Federation, simulate
from vertikal.kernels.spectral import kernel_named
from vertikal.mesh.recording import RecordingMesh, Tape
from vertikal.party.party import Labels, digest
from vertikal.ring.integers import Ring
from vertikal.secure.keys import prg

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class LabelView:
    """The phases of a label party's own block, and the part of them that is its own doing."""

    phases: Array  # (rows, D) ring elements, as the solver gets them
    own_phases: Array  # (rows, D), from its own table and seed
    ring: Ring


@contextmanager
def watching() -> Iterator[dict[str, LabelView]]:
    """Look over the shoulder of the label parties of the runs inside: their views, by name."""
    views: dict[str, LabelView] = {}
    original = PhasePass.gather

    def gather(self: PhasePass, rows: int, kept: int) -> OpenOperator | None:
        operator = original(self, rows, kept)
        if operator is not None:
            views[self.party.name] = LabelView(
                operator.cached.copy(),
                self.own.local(self.party.table.block(slice(None))),
                self.own.ring,
            )
        return operator

    with mock.patch.object(PhasePass, "gather", gather):
        yield views


@dataclass(frozen=True)
class Run:
    """A training run: what its label parties held, every frame, and the shards by party."""

    views: Mapping[str, LabelView]
    shards: Mapping[str, Shard]
    tape: Tape = field(repr=False)

    def seen(self, receiver: str, sender: str, tree: str = "") -> Array:
        """The phases (rows, D) that ``receiver`` got from ``sender``, in row order."""
        frames = [
            frame.payload()
            for frame in self.tape
            if frame.header.tag.startswith("sum/phases/")
            and frame.header.tag.endswith(tree)
            and (frame.header.sender, frame.header.receiver) == (sender, receiver)
        ]
        return np.concatenate(frames)


def train(
    columns: Mapping[str, Array], targets: Array, settings: FdsklSettings, masking: str = "pads"
) -> Run:
    """Train in earnest, with these columns (rows, width) by party; the seed fixes all secrets."""
    tape = Tape()
    federation = Federation(
        {
            name: Table(name, tuple(f"{name}{i}" for i in range(values.shape[1])), values)
            for name, values in columns.items()
        },
        settings.label_parties,
        Labels(targets[:, None], np.ones(len(targets))),
        {name: prg.derive_key(bytes(32), name, str(settings.seed)) for name in columns},
        digest(settings),
        masking,
        60.0,
        wrap=lambda mesh: RecordingMesh(mesh, tape),
    )
    with watching() as views:
        outcome = simulate(federation, lambda party: fdskl.train(party, settings))
    return Run(views, outcome.results, tape)


def drawn_directions(
    key: bytes, purpose: tuple[str, ...], kernel: str, bandwidth: float, columns: int, width: int
) -> Array:
    """Directions (columns, width) as a party draws them, for whoever has the key."""
    uniforms = prg.uniform_reals(prg.derive_key(key, *purpose), (columns, width))
    return kernel_named(kernel).directions(uniforms, None) / bandwidth


def public_directions(
    settings: FdsklSettings, bandwidth: float, owner: str, widths: Mapping[str, int]
) -> Array:
    """The others' coordinates of ``owner``'s directions as the public seed gives them.

    ``widths`` are the others' numbers of columns; an attacker who does not know them guesses high.
    """
    public = prg.derive_key(settings.seed.to_bytes(32, "big"), "public")
    D = settings.widths()[owner]
    return np.concatenate(
        [
            drawn_directions(
                public, ("directions", owner, name), settings.kernel, bandwidth, width, D
            )
            for name, width in widths.items()
        ]
    )
