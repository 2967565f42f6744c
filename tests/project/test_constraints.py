"""constraints.txt names one exact version of everything that `make` installs, and nothing else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"([A-Za-z0-9._-]+)==\d[\w.!+]*")


def normalised(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required(project: dict) -> set[str]:
    """The names of all requirements that `make demo` and `make test` install."""
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["fast"], *extras["node"], *extras["dev"]]
    return {normalised(re.match(r"[A-Za-z0-9._-]+", line)[0]) for line in lines}


def test_every_line_is_an_exact_version():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not PIN.fullmatch(line)] == []
    names = [normalised(PIN.fullmatch(line)[1]) for line in lines]
    assert len(set(names)) == len(names)


def test_every_requirement_has_a_line():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert sorted(required(project) - {normalised(line.split("==")[0]) for line in lines}) == []


def test_a_missing_requirement_would_be_noticed():
    extras = {"fast": ["New_Package>=2"], "node": [], "dev": []}
    assert required({"dependencies": ["a>1"], "optional-dependencies": extras}) == {
        "a",
        "new-package",
    }
