"""Bytes and seconds as people read them, rounded to what the eye can use.

Negative and non-finite values are written as such ("−3.0 s", "n/a") and never raise: a clock that
stepped back must not cost the user the report of a long run.
"""

from __future__ import annotations

import math
from typing import Final, SupportsFloat

_BYTE_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
# Seconds and name of a large unit and of the small one beside it, and where the next pair begins.
_LONG: Final = (
    (60, "min", 1, "s", 60),
    (3600, "h", 60, "min", 24),
    (86_400, "d", 3600, "h", math.inf),
)


def bytes_text(n: SupportsFloat) -> str:
    """Write bytes in decimal units, as network equipment and disks count them.

    >>> bytes_text(999), bytes_text(33_344_000), bytes_text(999_960)
    ('999 B', '33.3 MB', '1.0 MB')
    """
    value = float(n)
    if not math.isfinite(value):
        return "n/a"
    unit = 0
    # 999.5 is where rounding would print "1000", which belongs to the next unit.
    while abs(value) >= 999.5 and unit < len(_BYTE_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    digits = f"{value:.1f}" if unit and abs(value) < 99.95 else _whole(value)
    return f"{digits} {_BYTE_UNITS[unit]}".replace("-", "−")


def seconds_text(s: SupportsFloat) -> str:
    """Write a duration with the two leading units that matter.

    >>> seconds_text(0.012), seconds_text(3.4), seconds_text(125), seconds_text(3900)
    ('12 ms', '3.4 s', '2 min 5 s', '1 h 5 min')
    """
    value = float(s)
    if not math.isfinite(value):
        return "n/a"
    if value < 0:
        return "−" + seconds_text(-value)
    if value < 1e-6:
        return "< 1 µs" if value else "0 s"
    for unit, factor in (("µs", 1e6), ("ms", 1e3)):
        if value * factor < 999.5:
            return f"{value * factor:.{1 if value * factor < 9.95 else 0}f} {unit}"
    if value < 59.95:
        return f"{value:.1f} s"
    for large, name, small, small_name, most in _LONG:
        # Rounding comes before splitting, so that 119.7 s is "2 min" and not "1 min 60 s".
        whole, rest = divmod(round(value / small), large // small)
        words = f"{_whole(whole)} {name}" + (f" {rest} {small_name}" if rest else "")
        if whole < most:
            break
    return words


def _whole(value: float) -> str:
    """Write all digits, or a power of ten where nobody would count them."""
    return f"{value:,.0f}" if abs(value) < 1e6 else f"{value:.1e}"
