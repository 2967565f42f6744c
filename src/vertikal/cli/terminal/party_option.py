"""The option ``--party``: which party a command is about, by its party file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from vertikal.node.config.party_search import VARIABLE, party_file, store_of

__all__ = ["VARIABLE", "ask_service", "party_file", "party_option", "store_of"]

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


def ask_service(path: Path | None, command: str, **arguments: Any) -> Any:
    """Ask the service of this party."""
    from vertikal.node.control import ask

    return ask(store_of(path), command, **arguments)
