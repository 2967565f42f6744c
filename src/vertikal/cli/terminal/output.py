"""Output of lists: a drawn table on a terminal, plain columns in a pipe, or JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from vertikal.node.printable import printable

GAP = "  "

F = TypeVar("F", bound=Callable[..., Any])


def json_option(command: F) -> F:
    """Add ``--json``, which a command receives as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(
        command
    )


def print_json(content: Any) -> None:
    """Print one JSON document on one line."""
    import msgspec

    click.echo(msgspec.json.encode(content))


def print_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under titles; whole numbers stand to the right.

    No cell is cut. A terminal that is too narrow gets it on several lines; a pipe gets one line per
    row, however long.
    """
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    right = [all(isinstance(row[place], int) for row in rows) for place in range(len(titles))]
    if sys.stdout.isatty():
        _draw(titles, cells, right)
        return
    lines = [titles, *cells]
    widths = [max(len(line[place]) for line in lines) for place in range(len(titles))]
    for line in lines:
        aligned = (
            cell.rjust(width) if end else cell.ljust(width)
            for cell, width, end in zip(line, widths, right, strict=True)
        )
        click.echo(GAP.join(aligned).rstrip())


def _draw(titles: Sequence[str], cells: list[list[str]], right: list[bool]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for title, end in zip(titles, right, strict=True):
        table.add_column(title, justify="right" if end else "left", overflow="fold")
    for line in cells:
        # As Text, since rich would read square brackets in a plain string as its own markup.
        table.add_row(*map(Text, line))
    Console(highlight=False).print(table)
