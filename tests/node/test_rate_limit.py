"""Limits on how much is taken in a stretch of time."""

from __future__ import annotations

from vertikal.node.rate_limit import RateLimit


def test_a_rate_recovers_with_time():
    now = [0.0]
    rate = RateLimit(60, 60.0, lambda: now[0])
    assert [rate.take() for _ in range(61)] == [True] * 60 + [False]
    now[0] = 2.5
    assert [rate.take() for _ in range(3)] == [True, True, False]


def test_what_is_beyond_the_limit_is_not_counted():
    now = [0.0]
    rate = RateLimit(100, 10.0, lambda: now[0])
    assert rate.take(70)
    assert not rate.take(70)
    assert rate.take(30)
    now[0] = 1000.0
    assert not rate.take(101)
    assert rate.take(100)
