"""docs/paper-map.md and the citations in docstrings agree, in both directions."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEADER = ["paper item", "function", "test"]
CITATION = re.compile(
    r"\b(?:FDSKL|VFKL|AVFKAM|SecGram|ADMM) "
    r"(?:Algorithm|Assumption|Corollary|Definition|Lemma|Theorem|Table|Figure|eq\.) ?\(?\d+\)?"
)


@dataclass(frozen=True)
class Row:
    item: str
    function: str
    test: str


def rows_of(markdown: str) -> list[Row]:
    """The rows of every table whose header is ``| paper item | function | test |``."""
    rows: list[Row] = []
    inside = False
    for line in markdown.splitlines():
        if not line.lstrip().startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if cells == HEADER:
            inside = True
        elif inside and not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            rows.append(Row(*cells))
    return rows


def citations_in(text: str) -> set[str]:
    """Literal citations; a bracket that was opened before the citation is not part of it."""
    return {found if "(" in found else found.rstrip(")") for found in CITATION.findall(text)}


def resolve(path: str) -> object:
    """The object at a dotted path: the longest module prefix, then attributes."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        try:
            found: object = importlib.import_module(name)
        except ModuleNotFoundError as error:
            # A missing library inside an existing module must not look like a wrong path.
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            continue
        for attribute in parts[length:]:
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(path)


def is_a_test(reference: str, root: Path) -> bool:
    """Return True if ``tests/file.py::test_name`` or ``…::TestClass::test_name`` is there."""
    path, *names = reference.split("::")
    file = root / path
    if not names or not file.is_file():
        return False
    body: list[ast.stmt] = ast.parse(file.read_text(encoding="utf-8")).body
    for name in names:
        named = [
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
        ]
        if not named:
            return False
        body = named[0].body
    return names[-1].startswith("test_")


def defects_of(row: Row, root: Path) -> list[str]:
    """List what is wrong with one row of the map."""
    if row.function.startswith("not implemented"):
        reasoned = re.fullmatch(r"not implemented: \S.*", row.function)
        return [] if reasoned else [f"{row.item}: give a reason, 'not implemented: ...'"]
    defects = []
    function = re.fullmatch(r"`([\w.]+)`", row.function)
    tests = re.findall(r"`([^`]+)`", row.test)
    if function is None:
        defects.append(f"{row.item}: {row.function!r} is not a dotted path in backticks")
    else:
        try:
            docstring = getattr(resolve(function[1]), "__doc__", None) or ""
        except (ModuleNotFoundError, AttributeError) as error:
            defects.append(f"{row.item}: {function[1]} does not resolve: {error}")
        else:
            # `FDSKL Algorithm 1` is not cited by `FDSKL Algorithm 10`.
            if not re.search(re.escape(row.item.strip("`")) + r"(?!\d)", docstring):
                defects.append(f"{row.item}: the docstring of {function[1]} does not cite it")
    if not tests:
        defects.append(f"{row.item}: no test in backticks")
    defects += [f"{row.item}: no test {name}" for name in tests if not is_a_test(name, root)]
    return defects


def unmapped_citations(source: Path, rows: list[Row]) -> list[str]:
    """Citations in docstrings below ``source`` that are no item of the map."""
    mapped = {citation for row in rows for citation in citations_in(row.item)}
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return [
        f"{file.name}: {citation} is not in docs/paper-map.md"
        for file in sorted(source.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, documented)
        for citation in sorted(citations_in(ast.get_docstring(node) or "") - mapped)
    ]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return rows_of((ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8"))


def test_the_map_has_rows(rows):
    assert rows


def test_every_row_points_at_a_citing_function_and_a_test(rows):
    assert [defect for row in rows for defect in defects_of(row, ROOT)] == []


def test_every_citation_is_in_the_map(rows):
    assert unmapped_citations(ROOT / "src" / "vertikal", rows) == []


SYNTHETIC_MAP = """
| symbol | name | shape |
|---|---|---|
| D | directions | scalar |

| paper item | function | test |
|---|:--|---|
| FDSKL Algorithm 1 | `paperpackage.box.train` | `tests/test_box.py::test_train` |
| VFKL eq. (3) | `paperpackage.box.Model.step` | `tests/test_box.py::TestBox::test_step` |
| FDSKL Theorem 7 | not implemented: it does not hold | |

| FDSKL Lemma 9 | outside any table | x |
"""
SYNTHETIC_MODULE = '''
"""Cites nothing."""
def train():
    """The box (FDSKL Algorithm 1), but see FDSKL Theorem 7."""
class Model:
    def step(self):
        """VFKL eq. (3)."""
def other():
    """FDSKL Algorithm 10."""
'''
SYNTHETIC_TEST = """
def test_train(): ...
def helper(): ...
class TestBox:
    def test_step(self): ...
"""


@pytest.fixture
def synthetic(tmp_path, monkeypatch):
    """A small package, its tests and its map."""
    (tmp_path / "paperpackage").mkdir()
    (tmp_path / "paperpackage" / "__init__.py").touch()
    (tmp_path / "paperpackage" / "box.py").write_text(SYNTHETIC_MODULE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_box.py").write_text(SYNTHETIC_TEST)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "paperpackage"]:
        del sys.modules[name]


def test_a_good_map_passes(synthetic):
    rows = rows_of(SYNTHETIC_MAP)
    assert len(rows) == 3
    assert [defect for row in rows for defect in defects_of(row, synthetic)] == []


def test_an_unmapped_citation_is_caught(synthetic):
    assert unmapped_citations(synthetic / "paperpackage", rows_of(SYNTHETIC_MAP)) == [
        "box.py: FDSKL Algorithm 10 is not in docs/paper-map.md"
    ]


GOOD_FUNCTION = "`paperpackage.box.train`"
GOOD_TEST = "`tests/test_box.py::test_train`"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (Row("FDSKL Algorithm 1", "`paperpackage.box.absent`", GOOD_TEST), "does not resolve"),
        (Row("FDSKL Algorithm 1", "`paperpackage.absent.train`", GOOD_TEST), "does not resolve"),
        (Row("FDSKL Algorithm 1", "paperpackage.box.train", GOOD_TEST), "backticks"),
        (Row("FDSKL Algorithm 2", GOOD_FUNCTION, GOOD_TEST), "does not cite it"),
        (Row("FDSKL Algorithm 1", "`paperpackage.box.other`", GOOD_TEST), "does not cite it"),
        (Row("FDSKL Algorithm 1", GOOD_FUNCTION, ""), "no test in backticks"),
        (Row("FDSKL Algorithm 1", GOOD_FUNCTION, "`tests/test_box.py`"), "no test"),
        (Row("FDSKL Algorithm 1", GOOD_FUNCTION, "`tests/absent.py::test_train`"), "no test"),
        (Row("FDSKL Algorithm 1", GOOD_FUNCTION, "`tests/test_box.py::test_x`"), "no test"),
        (Row("FDSKL Algorithm 1", GOOD_FUNCTION, "`tests/test_box.py::helper`"), "no test"),
        (Row("FDSKL Theorem 7", "not implemented", ""), "give a reason"),
    ],
)
def test_a_bad_row_is_caught(synthetic, row, complaint):
    assert [complaint in defect for defect in defects_of(row, synthetic)] == [True]
