"""The rule of the tests: they see the package as its callers do, without its private names.

A test that reads, sets or overrides a private name holds the code to how it is written, and not to
what it promises. The rule is a function that returns what it found, so that the same function is
shown, on small synthetic files, to find what it should.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXCEPTIONS: dict[str, str] = {}
"""``file: name`` -> the reason why there is no other way."""

# One underscore before a letter, and none at the end: `_repr_html_` is what notebooks call.
PRIVATE = re.compile(r"_[A-Za-z](\w*[A-Za-z0-9])?")
DOTTED = re.compile(r"(\w+\.)*\w+")


def is_private(name: str) -> bool:
    return PRIVATE.fullmatch(name) is not None


@dataclass
class Class:
    """Read a class statement: its bases by name, and the private names that it defines."""

    bases: list[str]
    private: set[str] = field(default_factory=set)


def trees_of(folder: Path) -> dict[Path, ast.Module]:
    return {
        file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(folder.rglob("*.py"))
    }


def defined_in(tree: ast.AST) -> set[str]:
    """Private names of functions, classes, variables and attributes that are made in a tree."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
    return {name for name in found if is_private(name)}


def own_names(body: ast.ClassDef) -> set[str]:
    """Private names that a class defines: methods, fields, and what it sets on itself."""
    found = set()
    for node in ast.walk(body):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Attribute(attr=name, value=value, ctx=ast.Store()) if is_own(value):
                found.add(name)
    return {name for name in found if is_private(name)}


def is_own(node: ast.expr) -> bool:
    """Recognise the object itself, and what it is to the classes above."""
    match node:
        case ast.Name(id="self" | "cls") | ast.Call(func=ast.Name(id="super")):
            return True
    return False


def classes_of(trees: dict[Path, ast.Module]) -> dict[str, Class]:
    """Classes by name; those of one name are taken together."""
    found: dict[str, Class] = {}
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases = [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases]
                one = found.setdefault(node.name, Class([]))
                one.bases += bases
                one.private |= own_names(node)
    return found


def inherited(
    name: str, classes: dict[str, Class], below: frozenset[str] = frozenset()
) -> set[str]:
    """Private names of a class and of all above it."""
    if name not in classes or name in below:
        return set()
    one = classes[name]
    above = [inherited(base, classes, below | {name}) for base in one.bases]
    return one.private.union(*above)


def private_uses(tests: Path, package: Path) -> list[str]:
    """``file:line: name`` of each private name of the package that a test touches."""
    code, written = trees_of(package), trees_of(tests)
    private = {name for tree in code.values() for name in defined_in(tree)}
    of_package, of_tests = classes_of(code), classes_of(written)
    found = []
    for file, tree in written.items():
        for line, name in sorted(set(touched(tree, private, of_package, of_tests))):
            found.append(f"{file.relative_to(tests).as_posix()}:{line}: {name}")
    return found


def touched(
    tree: ast.Module, private: set[str], of_package: dict[str, Class], of_tests: dict[str, Class]
) -> Iterator[tuple[int, str]]:
    """(line, name) of the private names of the package in one file."""
    allowed: dict[ast.AST, set[str]] = {}  # an attribute of `self` -> names of its class
    for body in ast.walk(tree):
        if isinstance(body, ast.ClassDef):
            bases = of_tests[body.name].bases
            above = set().union(*(inherited(base, of_package) for base in bases))
            for node in ast.walk(body):
                if isinstance(node, ast.FunctionDef) and node.name in above:
                    yield node.lineno, node.name
                elif isinstance(node, ast.Attribute) and is_own(node.value):
                    allowed[node] = inherited(body.name, of_tests) - above
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) if name not in allowed.get(node, ()):
                names = [name]
            case ast.ImportFrom(names=aliases):
                names = [alias.name for alias in aliases]
            case ast.Constant(value=str(text)) if DOTTED.fullmatch(text):
                names = [text.rpartition(".")[2]]  # setattr(x, "_y", z), patch("a.b._y")
            case _:
                continue
        for name in names:
            if is_private(name) and name in private:
                yield node.lineno, name


def test_tests_touch_no_private_name():
    found = private_uses(ROOT / "tests", ROOT / "src" / "vertikal")
    places = {re.sub(r":\d+:", ":", line) for line in found}
    assert [line for line in found if re.sub(r":\d+:", ":", line) not in EXCEPTIONS] == []
    assert set(EXCEPTIONS) <= places, "an exception that nothing needs any more"


PACKAGE = """
_CEILING = 3

def _whisper(): ...

class Mesh:
    def __init__(self):
        self._nook = []

    def _slip(self, frame): ...

class Recording(Mesh):
    def send(self):
        self._slip(1)
"""


def planted(root: Path, text: str) -> list[str]:
    """Find what the rule finds in a test of this text, next to a small package."""
    for path, content in (("vertikal/mesh.py", PACKAGE), ("tests/test_mesh.py", text)):
        file = root / path
        file.parent.mkdir(parents=True)
        file.write_text(content)
    return private_uses(root / "tests", root / "vertikal")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("def test(mesh): assert mesh._nook == []", "_nook"),
        ("def test(mesh): mesh._nook = []", "_nook"),
        ("def test(ends): ends['a']._slip(1)", "_slip"),
        ("from vertikal import mesh\ndef test(): mesh._whisper()", "_whisper"),
        ("from vertikal.mesh import _whisper", "_whisper"),
        ("from vertikal.mesh import _whisper as helper", "_whisper"),
        ("def test(monkeypatch, mesh): monkeypatch.setattr(mesh, '_CEILING', 1)", "_CEILING"),
        ("def test(): patch('vertikal.mesh._CEILING', 1)", "_CEILING"),
        ("def test(mesh): getattr(mesh, '_slip')(1)", "_slip"),
        (
            "from vertikal.mesh import Mesh\nclass Own(Mesh):\n    def _slip(self, frame): 0",
            "_slip",
        ),
        ("class Own(Recording):\n    def see(self): return self._nook", "_nook"),
        ("class Own(Recording):\n    def see(self): return super()._slip(1)", "_slip"),
        ("class Own(mesh.Recording):\n    def see(self): self._nook = 1", "_nook"),
        (
            "class A(Recording): ...\nclass B(A):\n    def see(self): return self._nook",
            "_nook",
        ),
        ("def see(self): return self._nook", "_nook"),
        ("class Own:\n    def __init__(self, mesh): self.x = mesh._nook", "_nook"),
    ],
)
def test_a_private_name_is_found(tmp_path, text, name):
    line = text[: text.rindex(name)].count("\n") + 1
    assert planted(tmp_path, text) == [f"test_mesh.py:{line}: {name}"]


@pytest.mark.parametrize(
    "text",
    [
        "def test(mesh): mesh.send()",
        "def test(point): point._replace(x=1)._asdict()",
        "import os\ndef test(): os._exit(0)",
        "def test(mesh): mesh._repr_html_(), mesh.__init__",
        "class Own:\n    def __init__(self): self._nook = 1\n    def see(self): return self._nook",
        "class Own(Mesh):\n    def set(self): self._own = 1\n    def see(self): return self._own",
        "class A:\n    def _slip(self): 0\nclass B(A):\n    def see(self): self._slip()",
        "def _whisper(): 0\ndef test(): _whisper()",
        "def test(): print('it calls _slip', 'of mesh._nook or so')",
    ],
)
def test_other_names_are_not(tmp_path, text):
    assert planted(tmp_path, text) == []
