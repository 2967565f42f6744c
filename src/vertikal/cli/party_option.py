"""Which party a command is about: its party file, and the socket of its service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from vertikal.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])


def party_option(command: F) -> F:
    """``--party FILE``, or VERTIKAL_PARTY, or the only party file of the current folder."""
    return click.option(
        "--party",
        "party",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar="VERTIKAL_PARTY",
        help="The party file; VERTIKAL_PARTY, or the only one in this folder, by default.",
    )(command)


def party_file(path: Path | None) -> Path:
    """The party file that is meant."""
    if path is not None:
        return path
    found = [one for one in sorted(Path().glob("*.toml")) if _is_party_file(one)]
    if len(found) != 1:
        names = ", ".join(one.name for one in found) or "none"
        raise InputError(
            f"--party must name the party file: there is no single one in this folder ({names})"
        )
    return found[0]


def ask_service(path: Path | None, command: str, **arguments: Any) -> Any:
    """Ask the service of this party."""
    from vertikal.node.config.party_file import PartyFile
    from vertikal.node.control import ask

    file = party_file(path)
    return ask(file.parent / PartyFile.load(file).store, command, **arguments)


def _is_party_file(path: Path) -> bool:
    from vertikal.node.config.party_file import PartyFile

    try:
        PartyFile.load(path)
    except InputError:
        return False
    return True
