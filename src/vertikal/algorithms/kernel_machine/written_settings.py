"""Settings as people write them, in estimators and job files: sizes with units, bits left open."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vertikal.errors import InputError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
MOST_BYTES = 2**63 - 1


def plainly(written: Mapping[str, Any]) -> dict[str, Any]:
    """The same settings with bits and bytes as numbers."""
    settings = dict(written)
    if settings.get("ring_bits", "auto") == "auto":
        settings["ring_bits"] = automatic_bits(settings.get("feature_map"))
    if "cache_size" in settings:
        settings["cache_size"] = parse_bytes(settings["cache_size"])
    return settings


def automatic_bits(feature_map: object) -> int:
    """Bits of a ring element: a phase needs 8, a distance to a landmark 16."""
    return 16 if feature_map == "landmarks" else 8


def parse_bytes(text: object) -> int | None:
    """A number of bytes, from a whole number or a text such as ``"500MB"`` or ``"2 GB"``."""
    if text is None:
        return None
    size: float = 0
    if isinstance(text, int) and not isinstance(text, bool):
        size = text
    elif isinstance(text, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", text.lower())
        size = float(match[1]) * _UNITS[match[2]] if match else 0
    if not 1 <= size <= MOST_BYTES:
        allowed = "a positive number of bytes below 2^63, a text like '2GB', or None"
        raise InputError.of("cache_size", allowed, text)
    return int(size)
