"""The command `vertikal` itself: quick to start, and help that can be read."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from vertikal.cli import main

HEAVY = ("numpy", "scipy", "sklearn", "pyarrow", "cryptography", "grpc", "rich")


def groups(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words that lead to each group of commands."""
    found, context = [path], click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found += groups(command, (*path, name))
    return found


@pytest.mark.parametrize("path", groups(main), ids=" ".join)
def test_help_lists_every_command_in_a_whole_sentence(path):
    shown = CliRunner().invoke(main, [*path, "--help"]).output
    lines = shown.partition("Commands:\n")[2].splitlines()
    assert lines
    for line in lines:
        assert line.endswith("."), line
        assert not line.endswith("..."), line


def test_help_loads_no_heavy_library():
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from vertikal.cli import main\n"
        "for words in (['--help'], ['job', 'plan', '--help'], ['predict', '--help']):\n"
        "    assert 'Usage' in CliRunner().invoke(main, words).output\n"
        f"print([name for name in {HEAVY} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
