"""Measures as text, with the digits that they deserve."""

from __future__ import annotations

from vertikal.metrics.measures import Measures


def short(value: float | None) -> str:
    """Write a measure with the digits that it deserves."""
    return "unknown" if value is None else f"{value:.3f}" if abs(value) < 100 else f"{value:.4g}"


def in_words(measures: Measures, name: str) -> str:
    """Write a measure with its interval."""
    one = measures.numbers[name]
    if one.low is None:
        return short(one.value)
    return f"{short(one.value)} ({short(one.low)} to {short(one.high)})"
