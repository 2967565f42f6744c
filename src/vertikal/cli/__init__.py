"""The command ``vertikal``: one file or folder per command, each a thin layer over the library.

Only what a terminal needs enters here: options, tables, progress and one-line errors.
"""

from vertikal.cli.group import main

__all__ = ["main"]
