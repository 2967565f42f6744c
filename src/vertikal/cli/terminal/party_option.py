"""The option ``--party``: which party a command is about, by its party file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from vertikal.errors import InputError

VARIABLE = "VERTIKAL_PARTY"

F = TypeVar("F", bound=Callable[..., Any])


def party_option(command: F) -> F:
    """Add ``--party FILE``; without it VERTIKAL_PARTY, or the only party file of the folder."""
    return click.option(
        "--party",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar=VARIABLE,
        help=f"Party file; by default {VARIABLE}, or the only one in this folder.",
    )(command)


def party_file(path: Path | None) -> Path:
    """Find the party file of a command whose option is ``path``."""
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


def ask_service(path: Path | None, command: str, **arguments: Any) -> Any:
    """Ask the service of this party."""
    from vertikal.node.control import ask

    return ask(store_of(path), command, **arguments)


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
