"""The asynchronous schedule (to come)."""

from __future__ import annotations

from vertikal.algorithms.stochastic import Learner
from vertikal.algorithms.watch import Watch
from vertikal.party import Party


def keep_going(party: Party, learner: Learner, watch: Watch) -> tuple[str, ...]:
    """To come."""
    raise NotImplementedError
