"""The package keeps to itself: standard library and its own modules, nothing else."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from vertikal import reporting

MODULES = sorted(Path(reporting.__file__ or "").parent.glob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_imports_stay_inside(module: Path) -> None:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names = [node.module or ""]
        for name in names:
            inside = name == "vertikal.reporting" or name.startswith("vertikal.reporting.")
            assert inside or name.partition(".")[0] in sys.stdlib_module_names


def test_public_names_exist() -> None:
    assert sorted(reporting.__all__) == list(reporting.__all__)
    assert all(hasattr(reporting, name) for name in reporting.__all__)
