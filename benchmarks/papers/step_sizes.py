"""The step of a stochastic method, chosen on training rows that were held back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.harness import Benchmark
from vertikal.errors import InputError


def chosen_step(
    run: Benchmark,
    method: str,
    sizes: Sequence[float],
    make: Callable[[float], Any],
    score: Callable[[Any], float],
) -> float:
    """Return the step whose model scores highest; keep all scores in the results.

    A step at which predictions diverge scores −1.
    """
    scores = {}
    for size in sizes:
        try:
            scores[size] = score(make(size))
        except InputError:
            scores[size] = -1.0
    run.figures[f"{method}: score on held-back training rows by step"] = scores
    best = max(scores, key=lambda size: scores[size])
    run.figure(f"{method}: step chosen", best)
    return best
