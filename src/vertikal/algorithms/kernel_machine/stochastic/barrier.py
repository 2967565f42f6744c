"""The schedule with a barrier: all label parties step at the same time, then wait for the last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.label_sums import LabelSums
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.stochastic.learner import Learner
from vertikal.algorithms.kernel_machine.stochastic.round_robin import ROWS, turns
from vertikal.algorithms.kernel_machine.stochastic.validation_curve import ValidationCurve
from vertikal.errors import MeshError
from vertikal.party.party import Party

Array = npt.NDArray[Any]


def run_with_barrier(
    party: Party, learner: Learner, sums: LabelSums, curve: ValidationCurve
) -> None:
    """Take all steps of VFKAM, AVFKAM Figure 2 (a): rounds in which every label party makes one.

    All read f before any of them writes, so that each round goes from one set of coefficients to
    the next. A round of m steps multiplies the coefficients before it by (1 − γλ)^m.
    """
    next_point = curve.interval
    for steps in rounds(learner.settings):
        own = steps.get(party.name)
        mine = None if own is None else learner.pick()  # line 2: pick pairs
        rows = _tell_rows(party, mine, tuple(steps))
        # The same order everywhere: products of hidden features are made in step.
        batches = {name: learner.operator.restricted(rows[name]) for name in steps}
        partials = {name: learner.partial(batch) for name, batch in batches.items()}
        received = {name: sums.to(name, partials[name]) for name in steps}  # line 3: f of a batch
        f = received.get(party.name)
        change = None
        if own is not None and mine is not None and f is not None:
            change = learner.change(batches[party.name], mine, f, own)  # line 4
        learner.decay(len(steps))  # line 5, for the steps of all
        if own is not None and change is not None:
            learner.add(own, change)
            learner.staleness[len(steps) - 1] += 1
        learner.total += len(steps)
        if learner.total >= next_point:
            next_point = learner.total + curve.interval
            curve.add_point(learner, sums)
        party.clock.advance(int(change is not None), learner.note())


def rounds(settings: FdsklSettings) -> Iterator[dict[str, slice]]:
    """Yield the columns of each label party's step, round by round.

    The steps are those of `turns`; a party whose directions are used up sits a round out.
    """
    steps: dict[str, slice] = {}
    for name, columns in turns(settings):
        if name in steps:
            yield steps
            steps = {}
        steps[name] = columns
    if steps:
        yield steps


def _tell_rows(party: Party, mine: Array | None, names: tuple[str, ...]) -> dict[str, Array]:
    """Tell all label parties this party's batch, if it has one; return the batch of each."""
    others = [name for name in party.label_parties if name != party.name]
    found = {}
    if mine is not None:
        found[party.name] = mine
        for name in others:
            party.tell(name, mine, ROWS)
    for name in others:
        if name not in names:
            continue
        rows = party.hear(name, ROWS)
        if (
            not isinstance(rows, np.ndarray)
            or rows.dtype != np.int64
            or rows.ndim != 1
            or not 0 <= rows.min(initial=0) <= rows.max(initial=0) < party.table.rows
        ):
            raise MeshError(f"{party.name}: {name} sent no row numbers of a batch")
        found[name] = rows
    return found
