"""The message that peers get when a party cannot go on; only its owner reads the whole error."""

from __future__ import annotations

from vertikal.errors import (
    BudgetSpent,
    DiskFull,
    MeshError,
    PassesUsedUp,
    PeerVisibleError,
    VertikalError,
)


def peer_message(me: str, error: BaseException) -> str:
    """Turn an error into a message for the other parties, with nothing in it about the data."""
    if isinstance(error, (MeshError, PassesUsedUp, PeerVisibleError)):
        return " ".join(str(error).split())
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, DiskFull):
        return f"{me}: the disk of its store is full"
    if isinstance(error, BudgetSpent):
        return f"{me}: its privacy budget does not allow this run"
    if isinstance(error, VertikalError):
        return f"{me} cannot go on; its owner knows why"
    return f"{me}: {type(error).__name__}; its owner knows more"
