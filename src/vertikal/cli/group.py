"""The command group, and how a command ends when something is wrong.

An error that Vertikal raises on purpose ends with one line and exit code 1; a stop by the user ends
quietly with 130, as shells expect. Anything else is a defect and keeps its traceback.
"""

from __future__ import annotations

from typing import Any

import click

from vertikal.cli.dealer import dealer
from vertikal.cli.demo import demo
from vertikal.cli.keygen import keygen
from vertikal.cli.run import run, run_party
from vertikal.errors import VertikalError
from vertikal.version import __version__

INTERRUPTED = 130


class OneLineErrors(click.Group):
    """A group whose commands report the library's own errors in one line."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except VertikalError as error:
            click.echo(f"error: {' '.join(str(error).split())}", err=True)
            ctx.exit(1)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="vertikal")
def main() -> None:
    """Kernel machines on vertically partitioned data."""


main.add_command(dealer)
main.add_command(demo)
main.add_command(keygen)
main.add_command(run)
main.add_command(run_party)
