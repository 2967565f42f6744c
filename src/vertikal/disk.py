"""What outlives a loss of power: a name is on the disk only once its folder is."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the folder's names, and no longer has those that were removed."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
