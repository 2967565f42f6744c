"""Waiting for something that other threads or processes bring about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SECONDS = 90.0
"""The most that a test waits for anything."""


def until(met: Callable[[], Any], what: str, told: Callable[[], str] = str) -> None:
    """Wait until something holds."""
    end = time.monotonic() + SECONDS
    while not met():
        assert time.monotonic() < end, f"not within {SECONDS} s: {what}\n{told()}"
        time.sleep(0.05)
