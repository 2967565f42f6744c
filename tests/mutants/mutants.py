"""The mutants of ``mutants.toml``: one wrong each, in the file of a function of the paper map."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


@dataclass(frozen=True)
class Mutant:
    """One wrong: in the file of ``function``, ``old`` becomes ``new``."""

    function: str  # as the map has it, below `vertikal`
    old: str
    new: str

    @property
    def file(self) -> Path:
        """The file that holds the function, below ``src``."""
        parts = f"vertikal.{self.function}".split(".")
        for length in range(len(parts), 0, -1):
            path = Path(*parts[:length]).with_suffix(".py")
            if (SOURCE / path).is_file():
                return path
        raise FileNotFoundError(self.function)

    @property
    def name(self) -> str:
        return f"{self.function}: {self.old} → {self.new}"


def read_mutants() -> tuple[Mutant, ...]:
    """All mutants of the list."""
    text = (ROOT / "tests" / "mutants" / "mutants.toml").read_text(encoding="utf-8")
    return tuple(Mutant(**one) for one in tomllib.loads(text)["mutants"])


MUTANTS = read_mutants()
