"""The option ``--store``: which party's store a command looks into."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def store_option(command: F) -> F:
    """``--store FOLDER``, or VERTIKAL_STORE, or the folder ``store`` beside the caller."""
    return click.option(
        "--store",
        type=click.Path(path_type=Path, file_okay=False, exists=True),
        envvar="VERTIKAL_STORE",
        default=Path("store"),
        show_default=True,
        help="The party's store, as its party file names it.",
    )(command)
