"""Docstrings say what a thing is or does, and never begin with a question word."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/vertikal", "tests", "benchmarks", "examples")
QUESTION = re.compile(r"(?:What|Whether|Who|Whom|Whose|How|Where|Why|Which|When)(?:ever)?\b")


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Every string that stands by itself: of modules, classes, functions, and below attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def questions(root: Path) -> list[str]:
    """``file:line: text`` of each docstring that begins with a question word."""
    found = []
    for file in sorted(root.rglob("*.py")):
        for text in docstrings(ast.parse(file.read_text(encoding="utf-8"))):
            first = str(text.value).strip().partition("\n")[0]
            if QUESTION.match(first):
                found.append(f"{file.relative_to(root)}:{text.lineno}: {first}")
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_docstring_begins_with_a_question(folder):
    assert questions(ROOT / folder) == []


@pytest.mark.parametrize(
    ("code", "caught"),
    [
        ('"""What is here."""', True),
        ('def f():\n    """Whether it is so."""', True),
        ('class C:\n    """How it went."""', True),
        ('class C:\n    x: int\n    """Which one."""', True),
        ('"""\nWhoever is first."""', True),
        ('"""Whole numbers."""', False),
        ('"""Hours: how many."""', False),
        ('x = "What is no docstring"', False),
    ],
)
def test_the_rule_sees_each_kind_of_docstring(code, caught, tmp_path):
    (tmp_path / "module.py").write_text(code)
    assert bool(questions(tmp_path)) is caught
