"""Charts of benchmarks as files that stand alone: an SVG with its stylesheet inside."""

from __future__ import annotations

import os
from pathlib import Path

from vertikal.reporting.rendering import stand_alone


def write_svg(chart: str, folder: Path, name: str) -> Path:
    """Write one chart beside the JSON file of its figures and print its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.svg"
    path.write_text(stand_alone(chart), encoding="utf-8")
    print(f"drawn in {os.path.relpath(path)}")
    return path
