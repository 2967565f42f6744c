"""The command ``vertikal`` itself: its commands, and how they end when something is wrong.

The file of a command is loaded when the command is run, so that no command waits for the libraries
of another. An error that Vertikal raises on purpose ends with one line and exit code 1; a stop by
the user ends quietly with 130, as shells expect. Anything else is a defect and keeps its traceback.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from vertikal.cli.terminal.loading import INTERRUPTED, loading
from vertikal.errors import VertikalError
from vertikal.node.printable import printable
from vertikal.version import __version__

COMMANDS = {
    "demo": "demo:demo",
    "run": "run:run",
    "run-party": "run:run_party",
    "dealer": "dealer:dealer",
    "keygen": "federation.keygen:keygen",
    "invite": "federation.invite:invite",
    "join": "federation.invite:join_",
    "federation": "federation.commands:federation",
    "party": "party:party",
    "catalog": "catalog:catalog",
    "job": "job:job",
    "console": "console:console",
    "predict": "predict:predict",
    "model": "model:model",
    "audit": "audit:audit",
    "aggregate": "aggregate.commands:aggregate",
}
"""Command -> its file in this folder and its name there, in the order of use."""


class OrderedGroup(click.Group):
    """A group whose help lists its commands as they stand in the file, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class OneLineErrors(click.Group):
    """A group whose commands report the library's own errors in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        with loading():
            command: click.Command = getattr(import_module(f"vertikal.cli.{module}"), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except VertikalError as error:
            click.echo(f"error: {printable(' '.join(str(error).split()))}", err=True)
            ctx.exit(1)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="vertikal")
def main() -> None:
    """Kernel machines on vertically partitioned data."""
