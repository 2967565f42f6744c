"""Charts of benchmarks as files that stand alone: an SVG with its stylesheet inside."""

from __future__ import annotations

import os
from pathlib import Path

from vertikal.reporting.style import chart_css


def write_svg(markup: str, folder: Path, name: str) -> Path:
    """Write one chart beside the JSON file of its figures and print its path."""
    head, rest = markup.split(">", 1)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.svg"
    path.write_text(f"{head}><style>{chart_css()}</style>{rest}\n")
    print(f"drawn in {os.path.relpath(path)}")
    return path
