"""A group of commands whose help lists them in the order of their use."""

from __future__ import annotations

import click


class OrderedGroup(click.Group):
    """Lists its commands as they stand in the file, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)
