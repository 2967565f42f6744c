"""The way from Python to one party: the control socket of its service, and its store."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vertikal.node.config.party_file import PartyFile
from vertikal.node.config.party_search import VARIABLE, party_file, store_of
from vertikal.node.control import ask

if TYPE_CHECKING:
    from vertikal.node.models.store import ModelStore


@dataclass(frozen=True)
class Connection:
    """One party, by its party file; nothing is open between two questions."""

    file: Path
    name: str

    @classmethod
    def to(cls, path: str | os.PathLike[str] | None) -> Connection:
        """Find the party: the file, or what VERTIKAL_PARTY names, or the only one in the folder."""
        named = path or os.environ.get(VARIABLE)
        file = party_file(Path(named) if named else None)
        return cls(file.absolute(), PartyFile.load(file).name)

    @property
    def store(self) -> Path:
        return store_of(self.file)

    @property
    def models(self) -> ModelStore:
        """The party's shards, which are read without its service."""
        from vertikal.node.models.store import ModelStore

        return ModelStore(self.store / "models")

    def ask(self, command: str, **arguments: Any) -> Any:
        """Ask the service; InputError if it does not run, or refuses."""
        return ask(self.store, command, **arguments)
