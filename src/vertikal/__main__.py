"""``python -m vertikal`` and the command ``vertikal``."""

from __future__ import annotations

import sys


def run() -> None:
    """Load the commands and run one; a stop by the user is quiet also while they load."""
    try:
        from vertikal.cli import main

        main(prog_name="vertikal")
    except KeyboardInterrupt:
        sys.exit(130)  # as shells expect


if __name__ == "__main__":
    run()
