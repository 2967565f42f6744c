"""The rules of the source tree: which layer may import which, and how files are named and sized.

Every rule is a function that returns what it found, so that the same function is shown, on a small
synthetic tree, to find what it should.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from vertikal import errors

PACKAGE = Path(__file__).parents[2] / "src" / "vertikal"

MACHINE = {"side_by_side", "reused_memory"}
MATHEMATICS = MACHINE | {
    *("ring", "kernels", "losses", "metrics", "solvers", "compute", "data"),
}
BELOW_PROGRAMS = MATHEMATICS | {"secure", "privacy", "party"}
BELOW_ESTIMATORS = BELOW_PROGRAMS | {
    "algorithms",
    "baselines",
    "mesh",
    "reporting",
    "files",
    "version",
}
# Services know algorithms by their interface and the table only, so that a new one is a folder and
# one line. Finding the common rows is theirs to begin, whatever is trained on them.
BELOW_NODE = (BELOW_ESTIMATORS - {"algorithms"}) | {
    "algorithms.algorithm",
    "algorithms.catalogue",
    "algorithms.alignment",
}
ANYTHING = {""}

# Layer -> what it may import besides itself, `errors`, `records` and `parameters`. The empty prefix
# opens everything; nothing else is an exception.
ARROWS: dict[str, set[str]] = {
    "errors": set(),
    "records": set(),
    "parameters": set(),
    "version": set(),
    "files": set(),
    "side_by_side": set(),
    "reused_memory": set(),
    "ring": {"side_by_side", "reused_memory"},
    "losses": set(),
    "metrics": set(),
    "data": MACHINE,
    "mesh": set(),
    "reporting": set(),
    "kernels": {"reused_memory", "ring"},
    "solvers": {"ring", "kernels", "losses"},
    "compute": MACHINE | {"ring", "kernels", "losses", "solvers", "data", "version"},
    "secure": {"reused_memory", "ring", "mesh"},
    "privacy": {"ring", "files"},
    "baselines": MATHEMATICS,
    "party": {"compute", "data", "kernels", "mesh", "privacy", "ring", "secure"},
    "algorithms": BELOW_PROGRAMS,
    "estimators": BELOW_ESTIMATORS,
    "node": BELOW_NODE,
    "client": {"node", "files", "metrics"},
    "console": {"client", "node", "reporting", "metrics", "files", "version"},
    "demo": BELOW_ESTIMATORS | {"estimators", "node"},
    "aggregation": {
        *("ring", "mesh", "secure", "kernels", "files", "version", "reporting"),
        *("algorithms.gram", "algorithms.fedcfk"),
        *("node.config", "node.printable", "node.rate_limit"),
    },
    "cli": ANYTHING,
    "__main__": ANYTHING,
    "__init__": ANYTHING,
}

SERIALISERS = {"pickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle"}
PUBLIC_RANDOMNESS = {"default_rng", "Generator"}
NO_PUBLIC_RANDOMNESS = {"secure", "mesh"}
FORBIDDEN_NAMES = {"utils", "helpers", "common", "misc"}
MOST_MODULES = 16


@dataclass(frozen=True)
class Import:
    """One imported thing, as the absolute dotted path of a module or of a name in it."""

    file: Path
    line: int
    target: str


def layer_of(file: Path, package: Path) -> str:
    """The first part of the path below the package: a folder, or a module at its top."""
    return file.relative_to(package).with_suffix("").parts[0]


def dotted(node: ast.expr) -> str:
    """``a.b.c`` for an attribute chain on a name, else the empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (head := dotted(node.value)):
        return f"{head}.{node.attr}"
    return ""


def absolute_base(node: ast.ImportFrom, file: Path, package: Path) -> str:
    """The module that ``from ... import`` names, with leading dots resolved."""
    if node.level == 0:
        return node.module or ""
    folder = (package.name, *file.relative_to(package).parent.parts)
    above = folder[: len(folder) - node.level + 1]
    return ".".join((*above, node.module) if node.module else above)


def imports_of(file: Path, package: Path) -> Iterator[Import]:
    """All imports of a file, at any depth, including those by a literal module name."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = absolute_base(node, file, package)
            for alias in node.names:
                yield Import(
                    file, node.lineno, base if alias.name == "*" else f"{base}.{alias.name}"
                )
        elif (
            isinstance(node, ast.Call)
            and dotted(node.func).split(".")[-1] in {"import_module", "__import__"}
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            yield Import(file, node.lineno, node.args[0].value)


def all_imports(package: Path) -> Iterator[Import]:
    for file in sorted(package.rglob("*.py")):
        yield from imports_of(file, package)


def forbidden_arrows(package: Path) -> list[str]:
    """Imports inside the package that point where their layer may not look."""
    found = []
    for entry in all_imports(package):
        layer = layer_of(entry.file, package)
        if layer not in ARROWS:
            found.append(
                f"{entry.file.name}: layer {layer!r} is not in ARROWS; add it with its arrows"
            )
            continue
        root, _, target = entry.target.partition(".")
        if root != package.name:
            continue
        allowed = ARROWS[layer] | {layer, "errors", "records", "parameters"}
        if not any(prefix == "" or f"{target}.".startswith(f"{prefix}.") for prefix in allowed):
            found.append(f"{entry.file.name}:{entry.line}: {layer} imports {entry.target}")
    return found


def forbidden_modules(package: Path) -> list[str]:
    """Imports of serialisers and ``random`` anywhere, and of ``cryptography`` outside secure/."""
    found = []
    for entry in all_imports(package):
        root = entry.target.split(".")[0]
        outside = root == "cryptography" and layer_of(entry.file, package) != "secure"
        if root in SERIALISERS | {"random"} or outside:
            found.append(f"{entry.file.name}:{entry.line}: imports {root}")
    return found


def numpy_random_uses(file: Path) -> Iterator[tuple[int, str]]:
    """(line, name) for every use of ``numpy.random.name``, under whatever alias."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    aliases = {}  # local name -> "numpy" or "numpy.random"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in {"numpy", "numpy.random"}:
                    aliases[alias.asname or "numpy"] = alias.name if alias.asname else "numpy"
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                if node.module == "numpy" and alias.name == "random":
                    aliases[alias.asname or "random"] = "numpy.random"
                elif (node.module or "").startswith("numpy.random"):
                    yield node.lineno, alias.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            head, _, rest = dotted(node).partition(".")
            path = f"{aliases.get(head, '')}.{rest}".split(".")
            if path[:2] == ["numpy", "random"] and len(path) == 3:
                yield node.lineno, path[2]


def forbidden_randomness(package: Path) -> list[str]:
    """NumPy's generators where bits are secret, and its hidden global state anywhere."""
    found = []
    for file in sorted(package.rglob("*.py")):
        secret = layer_of(file, package) in NO_PUBLIC_RANDOMNESS
        for line, name in numpy_random_uses(file):
            if secret or name not in PUBLIC_RANDOMNESS:
                found.append(f"{file.name}:{line}: uses numpy.random.{name}")
    return found


def records_read_elsewhere(package: Path) -> list[str]:
    """Types that msgspec is made to learn outside `records`, where two threads could meet in it."""
    found = []
    for file in sorted(package.rglob("*.py")):
        if file == package / "records.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("msgspec"):
                found.append(f"{file.name}:{node.lineno}: import msgspec as a whole")
            if not isinstance(node, ast.Call):
                continue
            name = dotted(node.func)
            typed = len(node.args) > 1 or any(word.arg == "type" for word in node.keywords)
            if name.startswith("msgspec.") and (
                name.endswith((".convert", ".Decoder", ".schema", ".schema_components"))
                or (name.endswith(".decode") and typed)
            ):
                found.append(f"{file.name}:{node.lineno}: {name}, which is `records`' to call")
    return found


def exceptions_elsewhere(package: Path) -> list[str]:
    """Exceptions that are defined outside `errors`."""
    known = {
        name
        for name, value in {**vars(builtins), **vars(errors)}.items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }
    return [
        f"{file.name}:{node.lineno}: {node.name} belongs into errors.py"
        for file in sorted(package.rglob("*.py"))
        if file != package / "errors.py"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        and known & {dotted(base).split(".")[-1] for base in node.bases}
    ]


def names_of_two_classes(package: Path) -> list[str]:
    """Public classes that have the name of another one: a reader must not have to ask which.

    `vertikal.client` has its own `Party`, the only word for what an owner asks and decides by.
    """
    homes: dict[str, list[str]] = {}
    for file in sorted(package.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(file.relative_to(package)))
    return [
        f"{name}: {', '.join(found)}"
        for name, found in homes.items()
        if len(found) > 1 and name != "Party"
    ]


def undescribed_folders(package: Path) -> list[str]:
    """Folders whose ``__init__.py`` does not say in two sentences what the room is for."""
    found = []
    for folder in sorted({file.parent for file in package.rglob("*.py")} - {package}):
        init = folder / "__init__.py"
        text = init.read_text(encoding="utf-8") if init.exists() else ""
        docstring = ast.get_docstring(ast.parse(text)) or ""
        if len(re.findall(r"[.!?](?:\s|$)", docstring)) < 2:
            found.append(f"{folder.relative_to(package)}/__init__.py: fewer than two sentences")
    return found


def crowded_folders(package: Path) -> list[str]:
    """Folders with so many modules that they want rooms."""
    counts = Counter(file.parent for file in package.rglob("*.py") if file.stem != "__init__")
    return [
        f"{folder.relative_to(package)}: {count} modules, at most {MOST_MODULES}"
        for folder, count in sorted(counts.items())
        if count > MOST_MODULES
    ]


def nameless_files(package: Path) -> list[str]:
    """Files and folders named after nothing."""
    return [
        f"{file.relative_to(package)}: a name that says nothing"
        for file in sorted(package.rglob("*.py"))
        if {file.stem, file.parent.name} & FORBIDDEN_NAMES
    ]


def module_imports(package: Path) -> dict[str, set[str]]:
    """Module -> the modules of the package that it imports, at any depth and for types only."""
    files = {
        ".".join(file.relative_to(package).with_suffix("").parts): file
        for file in sorted(package.rglob("*.py"))
        if file.stem != "__init__"
    }
    graph: dict[str, set[str]] = {name: set() for name in files}
    for name, file in files.items():
        for entry in imports_of(file, package):
            root, _, target = entry.target.partition(".")
            while root == package.name and target:
                if target in files:
                    graph[name].add(target)
                    break
                target = target.rpartition(".")[0]
    return graph


def circles(package: Path) -> list[str]:
    """Siblings, files or folders alike, of which each needs the other.

    Two modules in two folders make an edge between these folders where their paths part. So an
    import for types only, or inside a function, counts as any other.
    """
    levels: dict[str, dict[str, set[str]]] = {}
    for module, targets in module_imports(package).items():
        for target in targets - {module}:
            here, there = module.split("."), target.split(".")
            depth = next(
                (i for i, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), None
            )
            if depth is not None:
                level = levels.setdefault(".".join(here[:depth]), {})
                level.setdefault(here[depth], set()).add(there[depth])
    found = []
    for level, graph in sorted(levels.items()):
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            found.append(f"{level or package.name}: {' -> '.join(error.args[1])}")
    return found


RULES = [
    forbidden_arrows,
    forbidden_modules,
    forbidden_randomness,
    records_read_elsewhere,
    exceptions_elsewhere,
    names_of_two_classes,
    undescribed_folders,
    crowded_folders,
    nameless_files,
    circles,
]


def test_the_package_is_there():
    assert len(list(PACKAGE.rglob("*.py"))) > 1


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule(rule):
    assert rule(PACKAGE) == []


def plant(root: Path, path: str, text: str) -> Path:
    """A package of one file (and described folders), for the rules to judge."""
    package = root / "vertikal"
    file = package / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.parent != package:
        (file.parent / "__init__.py").write_text('"""A room. Things enter."""\n')
    file.write_text(text)
    return package


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "algorithms/fdskl.py",
            "from vertikal.party.party import Party\nfrom ..secure import ring",
        ),
        ("algorithms/fdskl.py", "from vertikal.ring.integers import Ring"),
        ("algorithms/fdskl.py", "import vertikal.errors\nfrom vertikal import errors, kernels"),
        ("secure/pads.py", "from cryptography.hazmat import primitives\nfrom . import keys"),
        ("solvers/lbfgs.py", "import numpy as np\ndef f(r: np.random.Generator): r.random()"),
        ("kernels/spectral.py", "import numpy as np\nrng = np.random.default_rng(1)"),
        ("node/control.py", "import msgspec\nmsgspec.json.decode(b'{}')"),
        ("mesh/wire.py", "from vertikal.records import convert"),
        ("cli/demo.py", "import vertikal\nfrom vertikal import estimators"),
    ],
)
def test_allowed_is_allowed(tmp_path, path, text):
    package = plant(tmp_path, path, text)
    assert [finding for rule in RULES for finding in rule(package)] == []


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (forbidden_arrows, "algorithms/fdskl.py", "from vertikal.mesh import Mesh"),
        (forbidden_arrows, "algorithms/fdskl.py", "from vertikal import mesh"),
        (forbidden_arrows, "algorithms/fdskl.py", "from ..mesh.wire import frame"),
        (forbidden_arrows, "algorithms/fdskl.py", "from .. import mesh"),
        (forbidden_arrows, "algorithms/fdskl.py", "from vertikal.node import *"),
        (forbidden_arrows, "kernels/spectral.py", "from vertikal.secure import pads"),
        (forbidden_arrows, "ring/integers.py", "import vertikal.kernels"),
        (forbidden_arrows, "kernels/spectral.py", "def f():\n    import vertikal.losses"),
        (forbidden_arrows, "kernels/spectral.py", "import_module('vertikal.data')"),
        (forbidden_arrows, "mesh/local.py", "from vertikal import FDSKLClassifier"),
        (forbidden_arrows, "mesh/local.py", "import vertikal"),
        (forbidden_arrows, "privacy/attacks/ica.py", "from ...mesh import wire"),
        (forbidden_arrows, "party.py", "import vertikal.algorithms.kernel_machine.fdskl"),
        (
            forbidden_arrows,
            "node/models/store.py",
            "from vertikal.algorithms.admm.shard import AdmmShard",
        ),
        (forbidden_arrows, "novelty/thing.py", "import vertikal.errors"),
        (forbidden_modules, "node/store.py", "import pickle"),
        (forbidden_modules, "node/store.py", "from cloudpickle import dumps"),
        (forbidden_modules, "node/store.py", "__import__('marshal')"),
        (forbidden_modules, "data/prepare.py", "from random import shuffle"),
        (forbidden_modules, "node/identity.py", "from cryptography import x509"),
        (forbidden_randomness, "kernels/spectral.py", "import numpy\nnumpy.random.seed(0)"),
        (forbidden_randomness, "kernels/spectral.py", "from numpy.random import normal"),
        (forbidden_randomness, "kernels/spectral.py", "import numpy.random as r\nr.rand(3)"),
        (forbidden_randomness, "kernels/spectral.py", "from numpy import random\nrandom.rand()"),
        (forbidden_randomness, "secure/pads.py", "import numpy as np\nnp.random.default_rng()"),
        (
            forbidden_randomness,
            "mesh/local.py",
            "import numpy as n\ndef f(r: n.random.Generator): 0",
        ),
        (records_read_elsewhere, "node/jobs.py", "import msgspec\nmsgspec.convert({}, Job)"),
        (records_read_elsewhere, "node/jobs.py", "import msgspec\nmsgspec.json.Decoder(Job)"),
        (records_read_elsewhere, "node/jobs.py", "import msgspec\nmsgspec.json.schema(Job)"),
        (
            records_read_elsewhere,
            "node/jobs.py",
            "import msgspec\nmsgspec.msgpack.decode(b'', type=Job)",
        ),
        (records_read_elsewhere, "node/jobs.py", "from msgspec.json import decode"),
        (exceptions_elsewhere, "node/jobs.py", "class Odd(ValueError):\n    pass"),
        (
            exceptions_elsewhere,
            "node/jobs.py",
            "from vertikal import errors\nclass Odd(errors.MeshError):\n    pass",
        ),
        (undescribed_folders, "kernels/__init__.py", '"""Only one sentence."""'),
        (nameless_files, "data/helpers.py", ""),
        (nameless_files, "utils/strings.py", ""),
    ],
)
def test_forbidden_is_caught(tmp_path, rule, path, text):
    assert rule(plant(tmp_path, path, text))


def test_a_folder_without_init_is_caught(tmp_path):
    package = plant(tmp_path, "kernels/spectral.py", "")
    (package / "kernels" / "__init__.py").unlink()
    assert undescribed_folders(package)


def test_a_name_of_two_classes_is_caught(tmp_path):
    package = plant(tmp_path, "node/a.py", "class Hello: ...\nclass _Kept: ...\n")
    plant(tmp_path, "mesh/a.py", "class _Kept: ...\n")
    assert names_of_two_classes(package) == []
    plant(tmp_path, "mesh/b.py", "class Hello: ...\n")
    assert names_of_two_classes(package)


def test_a_crowded_folder_is_caught(tmp_path):
    package = plant(tmp_path, "kernels/spectral.py", "")
    assert crowded_folders(package) == []
    for number in range(MOST_MODULES):
        (package / "kernels" / f"kernel_{number}.py").write_text("")
    assert crowded_folders(package)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("from vertikal.node.b import x", "from vertikal.node.a import y"),
        ("from vertikal.node.b import x", "def f():\n    from vertikal.node import a"),
        ("from vertikal.node.b import x", "if TYPE_CHECKING:\n    from vertikal.node.a import y"),
    ],
)
def test_a_circle_of_modules_is_caught(tmp_path, first, second):
    package = plant(tmp_path, "node/a.py", first)
    assert circles(package) == []
    (package / "node" / "b.py").write_text(second)
    assert circles(package)


def test_a_circle_of_folders_is_caught(tmp_path):
    package = plant(tmp_path, "node/links/a.py", "from vertikal.node.runs.b import x")
    plant(tmp_path, "node/runs/b.py", "")
    plant(tmp_path, "node/runs/c.py", "")
    assert circles(package) == []
    plant(tmp_path, "node/runs/c.py", "from vertikal.node.links.d import y")
    plant(tmp_path, "node/links/d.py", "")
    assert circles(package)
