"""The stochastic solver: steps by the schedule of the settings, for FDSKL and AVFKAM alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.label_sums import LabelSums
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.algorithms.kernel_machine.stochastic.asynchronous import AsynchronousRun
from vertikal.algorithms.kernel_machine.stochastic.barrier import run_with_barrier
from vertikal.algorithms.kernel_machine.stochastic.learner import Learner, UpdateRule
from vertikal.algorithms.kernel_machine.stochastic.round_robin import run_in_turn
from vertikal.algorithms.kernel_machine.stochastic.validation_curve import ValidationCurve
from vertikal.party.party import Party
from vertikal.solvers.feature_operator import FeatureOperator

Array = npt.NDArray[Any]

_NO_ROWS = np.empty(0, np.int64)


def learn_stochastically(
    party: Party,
    shard: Shard,
    operator: FeatureOperator,
    rule: UpdateRule,
    penalty: float,
    curve: ValidationCurve | None = None,
    rows: Array | None = None,
) -> tuple[Shard, Array | None]:
    """Take all steps, and return this label party's shard and the final f of ``rows``.

    The label parties take their steps by the schedule of the settings. ``curve`` follows the run
    on held-out rows, none by default. Only the first label party gets f (rows, outputs).
    """
    settings = shard.settings
    learner = Learner(shard, operator, rule, penalty)
    curve = curve or ValidationCurve(settings, _NO_ROWS, np.zeros(operator.rows, bool))
    rows = _NO_ROWS if rows is None else rows
    missing: tuple[str, ...] = ()
    if settings.asynchronous:
        own = AsynchronousRun(party, learner, curve)
        own.run()
        f = own.close(rows)
        missing = own.missing
    else:
        sums = LabelSums(party, settings.label_parties)
        run = run_with_barrier if settings.schedule == "barrier" else run_in_turn
        run(party, learner, sums, curve)
        f = None
        if len(rows):
            f = sums.to(party.leader, learner.partial(operator.restricted(rows)))
    training = learner.training(missing)
    return replace(shard, coefficients=learner.coefficients(), training=training), f
