"""``vertikal aggregate``: the group of its commands, in the order of use."""

from __future__ import annotations

import click

from vertikal.cli.aggregate.client_side import join, key, recommend
from vertikal.cli.aggregate.server_side import authority, enroll, serve, status
from vertikal.cli.group import OrderedGroup


@click.group(cls=OrderedGroup)
def aggregate() -> None:
    """Sum what many clients send, so that nobody sees one's own."""


for command in (authority, key, enroll, serve, status, join, recommend):
    aggregate.add_command(command)
