"""The option ``--party``: which party a command is about, by its party file."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from vertikal.node.config.party_search import VARIABLE, party_file, store_of

__all__ = ["VARIABLE", "ask_service", "party_argument", "party_file", "party_option", "store_of"]

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


def party_argument(command: F) -> F:
    """Add the argument FILE of commands about the party itself, which may also be ``--party``."""

    @party_option
    @click.argument(
        "file", type=click.Path(path_type=Path, dir_okay=False), required=False, metavar="[FILE]"
    )
    @functools.wraps(command)
    def with_file(*arguments: Any, file: Path | None, party: Path | None, **options: Any) -> Any:
        return command(*arguments, file=file or party, **options)

    return cast(F, with_file)


def ask_service(path: Path | None, command: str, **arguments: Any) -> Any:
    """Ask the service of this party."""
    from vertikal.node.control import ask

    return ask(store_of(path), command, **arguments)
