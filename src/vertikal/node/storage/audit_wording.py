"""Facts of an audit line in words, as lists show them."""

from __future__ import annotations

from collections.abc import Mapping

from vertikal.node.storage.audit_log import Line


def facts_text(facts: Mapping[str, object]) -> str:
    """Write facts as ``name=value``, apart from empty ones."""
    return "  ".join(f"{name}={_text(value)}" for name, value in facts.items() if value != "")


def found_in(line: Line, text: str) -> bool:
    """Return True if event, date or facts of a line contain this text, in whatever case."""
    return text.lower() in f"{line.time} {line.event} {facts_text(line.facts)}".lower()


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    if isinstance(value, dict):
        return ",".join(f"{name}:{number}" for name, number in value.items())
    return str(value)
