"""Settings as people write them, in estimators and job files: sizes with units, bits left open."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vertikal.errors import InputError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def plainly(written: Mapping[str, Any]) -> dict[str, Any]:
    """The same settings with bits and bytes as numbers."""
    settings = dict(written)
    if settings.get("ring_bits", "auto") == "auto":
        settings["ring_bits"] = automatic_bits(settings.get("feature_map"))
    if "memory" in settings:
        settings["memory"] = parse_bytes(settings["memory"])
    return settings


def automatic_bits(feature_map: object) -> int:
    """Bits of a ring element: a phase needs 8, a distance to a landmark 16."""
    return 16 if feature_map == "landmarks" else 8


def parse_bytes(text: object) -> int | None:
    """A number of bytes, from a whole number or a text such as ``"500MB"`` or ``"2 GB"``."""
    if text is None or (isinstance(text, int) and not isinstance(text, bool)):
        if isinstance(text, int) and text < 1:
            raise InputError.of("memory", "a positive number of bytes, '2GB', or None", text)
        return text
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", str(text).lower())
    if not isinstance(text, str) or match is None or float(match[1]) <= 0:
        raise InputError.of(
            "memory", "a positive number of bytes, a text like '2GB', or None", text
        )
    return int(float(match[1]) * _UNITS[match[2]])
