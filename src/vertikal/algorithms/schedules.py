"""The stochastic solvers by their schedule: the one place where FDSKL's and AVFKAM's meet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.asynchronous import keep_going
from vertikal.algorithms.label_sums import LabelSums
from vertikal.algorithms.shard import Shard
from vertikal.algorithms.stochastic import Learner, Rule
from vertikal.algorithms.turns import take_turns
from vertikal.algorithms.watch import Watch
from vertikal.party import Party
from vertikal.solvers.operator import FeatureOperator

Array = npt.NDArray[Any]


def learn_stochastically(
    party: Party,
    shard: Shard,
    operator: FeatureOperator,
    rule: Rule,
    penalty: float,
    watch: Watch | None = None,
) -> Shard:
    """This label party's shard after all steps, in turn or without waiting.

    ``watch`` follows the run on held-out rows; none are by default.
    """
    settings = shard.settings
    learner = Learner(party, shard, operator, rule, penalty)
    watch = watch or Watch(settings, np.empty(0, np.int64), np.zeros(operator.rows, bool))
    missing: tuple[str, ...] = ()
    if settings.asynchronous:
        missing = keep_going(party, learner, watch)
    else:
        take_turns(party, learner, LabelSums(party, settings.label_parties), watch)
    return replace(shard, coefficients=learner.coefficients(), training=learner.training(missing))
