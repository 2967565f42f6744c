"""Quantities as people read them: bytes, seconds and counts.

A report is read by someone who decides, not by a parser, so every quantity is
rounded to what the eye can use and carries its unit. Negative and non-finite
values are shown as such ("−3.0 s", "n/a") and never raise: a clock that stepped
back must not cost the user the report of a long run.
"""

from __future__ import annotations

import math
from typing import Final, SupportsFloat, SupportsIndex

__all__ = ["bytes_text", "count_text", "seconds_text"]

_BYTE_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


def bytes_text(n: SupportsFloat) -> str:
    """Bytes in decimal units, as network equipment and disks count them.

    >>> bytes_text(999), bytes_text(33_344_000), bytes_text(999_960)
    ('999 B', '33.3 MB', '1.0 MB')
    """
    value = float(n)
    if not math.isfinite(value):
        return "n/a"
    if value < 0:
        return "−" + bytes_text(-value)
    if value < 999.5:
        return f"{value:.0f} B"
    unit = 0
    # The bound is where rounding would print "1000", which belongs to the next unit.
    while value >= 999.5 and unit < len(_BYTE_UNITS) - 1:
        value /= 1000
        unit += 1
    digits = f"{value:.1f}" if value < 99.95 else _long(value)
    return f"{digits} {_BYTE_UNITS[unit]}"


def seconds_text(s: SupportsFloat) -> str:
    """A duration with the two leading units that matter.

    >>> seconds_text(0.012), seconds_text(3.4), seconds_text(125), seconds_text(3900)
    ('12 ms', '3.4 s', '2 min 5 s', '1 h 5 min')
    """
    value = float(s)
    if not math.isfinite(value):
        return "n/a"
    if value < 0:
        return "−" + seconds_text(-value)
    if value == 0:
        return "0 s"
    if value < 0.9995e-6:
        return "< 1 µs"
    if value < 0.9995e-3:
        return f"{_short(value * 1e6)} µs"
    if value < 0.9995:
        return f"{_short(value * 1e3)} ms"
    if value < 59.95:
        return f"{value:.1f} s"
    # Rounding comes before splitting, so that 119.7 s is "2 min" and not "1 min 60 s".
    if round(value) < _HOUR:
        return _two_units(round(value), _MINUTE, "min", 1, "s")
    if round(value / _MINUTE) * _MINUTE < _DAY:
        return _two_units(round(value / _MINUTE) * _MINUTE, _HOUR, "h", _MINUTE, "min")
    if value < 1e6 * _DAY:
        return _two_units(round(value / _HOUR) * _HOUR, _DAY, "d", _HOUR, "h")
    return f"{_long(value / _DAY)} d"


def count_text(n: SupportsIndex) -> str:
    """A whole number with thousands separators.

    >>> count_text(32561)
    '32,561'
    """
    return f"{n.__index__():,}".replace("-", "−")


def _short(value: float) -> str:
    """One decimal below ten, none above: two digits are enough for a fraction of a second."""
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def _long(value: float) -> str:
    """All digits, or a power of ten where nobody would count them."""
    return f"{value:,.0f}" if value < 1e6 else f"{value:.1e}"


def _two_units(total: int, large: int, large_name: str, small: int, small_name: str) -> str:
    """Write `total` seconds as whole large units and the remaining small ones, if any."""
    whole, rest = divmod(total, large)
    head = f"{whole:,} {large_name}"
    return f"{head} {rest // small} {small_name}" if rest // small else head
