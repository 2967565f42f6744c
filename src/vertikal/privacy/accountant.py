"""The cost of T Gaussian releases in (ε, δ): the paper's composition, and the tight one beside it.

A release of sensitivity Δ with noise of deviation σ is μ-Gaussian-DP, μ = Δ/σ; T of them are
√T·μ-Gaussian-DP, exactly (Dong, Roth, Su 2022, Corollary 3.3), also when each depends on what the
earlier ones showed. δ(ε) has a closed form (Balle and Wang 2018, Theorem 8), so nothing is lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.special import log_ndtr, ndtr

from vertikal.errors import InputError

_LARGEST = 1e8


@dataclass(frozen=True)
class Spent:
    """Price that one party has paid for its first ``round`` releases."""

    round: int
    epsilon: float  # tight, at δ
    composed: float  # by Corollary 1, at the same δ
    delta: float


def delta_of(mu: float, epsilon: float) -> float:
    """δ(ε) of μ-Gaussian-DP: Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)."""
    if mu == 0:
        return 0.0
    # In logarithms: e^ε and the tail of Φ are far out of range on their own.
    tail = math.exp(min(0.0, epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))))
    return max(0.0, float(ndtr(mu / 2 - epsilon / mu)) - tail)


def epsilon_of(mu: float, delta: float) -> float:
    """The smallest ε ≥ 0 at which μ-Gaussian-DP is (ε, δ)-DP."""
    if delta_of(mu, 0.0) <= delta:
        return 0.0
    high = 1.0
    while delta_of(mu, high) > delta:
        high *= 2
        if high > _LARGEST:
            return math.inf
    # From above: the function falls.
    return _root(lambda epsilon: delta_of(mu, epsilon) - delta, 0.0, high, 1e-12) + 1e-11


def mu_of(epsilon: float, delta: float) -> float:
    """The largest μ at which μ-Gaussian-DP is (ε, δ)-DP."""
    check_budget(epsilon, delta)
    low, high = 0.0, 1.0
    while delta_of(high, epsilon) < delta:
        low, high = high, 2 * high
    root = _root(lambda mu: delta_of(mu, epsilon) - delta, low, high, 1e-14)
    return root * (1 - 1e-9)  # on the safe side of the root


def tight_deviation(epsilon: float, delta: float, rounds: int, sensitivity: float) -> float:
    """The smallest σ for which ``rounds`` releases are (ε, δ)-DP together."""
    return sensitivity * math.sqrt(rounds) / mu_of(epsilon, delta)


def theorem3_deviation(epsilon: float, delta: float, sensitivity: float) -> float:
    """ADMM Theorem 3: σ = √(2 ln(1.25/δ))·Δ/ε for one release; it needs ε ≤ 1."""
    if not 0 < epsilon <= 1:
        raise InputError.of("epsilon", "in (0, 1] for each round (Theorem 3)", epsilon)
    return math.sqrt(2 * math.log(1.25 / delta)) * sensitivity / epsilon


def corollary1(epsilon: float, delta: float, rounds: int, slack: float) -> tuple[float, float]:
    """ADMM Corollary 1, with ADMM eq. (17): T rounds of (ε, δ) are (ε', Tδ + δ'), δ' = ``slack``.

    ε' = √(2T ln(1/δ'))·ε + Tε(e^ε − 1).
    """
    total = math.sqrt(2 * rounds * math.log(1 / slack)) * epsilon
    total += rounds * epsilon * math.expm1(epsilon)
    return total, rounds * delta + slack


def corollary1_round(epsilon: float, delta: float, rounds: int) -> tuple[float, float]:
    """The (ε, δ) of one round for which Corollary 1 gives the stated total; half of δ is slack.

    Beyond ε = 1 a round is not covered by Theorem 3, so it is held there.
    """
    check_budget(epsilon, delta)

    def excess(one: float) -> float:
        return corollary1(one, delta / (2 * rounds), rounds, delta / 2)[0] - epsilon

    if excess(1.0) <= 0:
        return 1.0, delta / (2 * rounds)
    return _root(excess, 0.0, 1.0, 1e-15) * (1 - 1e-9), delta / (2 * rounds)


def check_budget(epsilon: float, delta: float) -> None:
    """Refuse numbers that are no (ε, δ)."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError.of("epsilon", "a positive number", epsilon)
    if not 0 < delta < 1:
        raise InputError.of("delta", "between 0 and 1", delta)


def _root(function: Callable[[float], float], low: float, high: float, close: float) -> float:
    """A root between ``low`` and ``high``, to within ``close``."""
    # Loaded here: it takes a third of a second, and most parties never count a budget.
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=close))
