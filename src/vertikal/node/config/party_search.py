"""The party that is meant where no party file is named, and the store of a party."""

from __future__ import annotations

from pathlib import Path

from vertikal.errors import InputError

VARIABLE = "VERTIKAL_PARTY"
"""Environment variable with the party file of commands that name none."""


def party_file(path: Path | None) -> Path:
    """Return the party file that was named, or else the only one in this folder."""
    if path is not None:
        return path
    files = sorted(Path().glob("*.toml"))
    found = [one for one in files if _is_party_file(one)]
    if not found:
        # One that is broken is not absent: who loads it says what is wrong with it.
        found = [one for one in files if _is_meant_as_one(one)]
    if len(found) != 1:
        names = ", ".join(one.name for one in found) or "none"
        raise InputError(
            f"this folder must have exactly one party file, got {names}; name the file that is "
            f"meant, or set {VARIABLE}"
        )
    return found[0]


def store_of(path: Path | None) -> Path:
    """Find the store of this party, which its service has made."""
    from vertikal.node.config.party_file import PartyFile

    file = party_file(path)
    content = PartyFile.load(file)
    store = file.parent / content.store
    if not store.is_dir():
        raise InputError(
            f"{content.name} has no store yet (no folder {content.store!r} beside {file.name}); "
            "`vertikal party start` makes it"
        )
    return store


def _is_party_file(path: Path) -> bool:
    from vertikal.node.config.party_file import PartyFile

    try:
        PartyFile.load(path)
    except InputError:
        return False
    return True


def _is_meant_as_one(path: Path) -> bool:
    """Tell whether a file that is no good party file is more likely one than anything else."""
    import tomllib

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return path.name == "party.toml"
    return "store" in content or ("certificate" in content and "party" not in content)
