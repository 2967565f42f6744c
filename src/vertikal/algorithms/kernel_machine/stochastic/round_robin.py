"""The schedule in turns: label parties take their steps one by one, and all wait for each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.label_sums import LabelSums
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.stochastic.learner import (
    Learner,
    direction_blocks,
    number_of_steps,
)
from vertikal.algorithms.kernel_machine.stochastic.validation_curve import ValidationCurve
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure

Array = npt.NDArray[Any]

ROWS = Disclosure(
    "batches", "row numbers of a batch", "label parties learn which rows a step uses", masked=False
)


def run_in_turn(party: Party, learner: Learner, sums: LabelSums, curve: ValidationCurve) -> None:
    """Take all steps of FDSKL Algorithm 1: label parties in turn, a constant step size.

    It is also VFKL Algorithm 1, and with pairs of rows and one label party TSAM. A step uses a
    batch of rows and a block of directions, where the papers use one of each.
    """
    settings = learner.settings
    for label_party, columns in turns(settings):  # line 1: keep doing, each label party in its turn
        mine = label_party == party.name
        rows = learner.pick() if mine else None  # line 2: pick instances
        rows = _announce(party, label_party, rows)  # line 3: send their numbers to the others
        batch = learner.operator.restricted(rows)  # lines 4 and 5: the phases, summed before
        partial = learner.partial(batch)  # line 6, by Algorithm 2
        f = sums.to(label_party, partial)  # line 7: f(x) = Σ_ℓ f^ℓ(x)
        # Lines 8 and 9: α = −γ·L'(f(x), y)·φ(x), as a mean over the batch.
        change = None if f is None else learner.change(batch, rows, f, columns)
        learner.decay()  # line 10
        if change is not None:
            learner.add(columns, change)
            learner.staleness[0] += 1
        learner.total += 1
        if curve.due(learner.total):
            curve.add_point(learner, sums)
        party.clock.advance(int(mine), learner.note())


def turns(settings: FdsklSettings) -> Iterator[tuple[str, slice]]:
    """Yield (label party, columns of its block) of each step: the parties in turn.

    Each party goes through its own blocks, and after the last begins again with the first. By
    default every direction is used once.
    """
    blocks = {
        label_party: direction_blocks(settings, label_party)
        for label_party in settings.label_parties
    }
    # One pass: each direction once; a party whose blocks are used up sits out the last turn.
    once = [
        (label_party, mine[place])
        for place in range(max(map(len, blocks.values())))
        for label_party, mine in blocks.items()
        if place < len(mine)
    ]
    for step in range(number_of_steps(settings)):
        yield once[step % len(once)]


def _announce(party: Party, label_party: str, rows: Array | None) -> Array:
    group = (label_party, *(name for name in party.label_parties if name != label_party))
    if len(group) == 1 and rows is not None:
        return rows
    return np.asarray(party.broadcast(rows, group, ROWS))
