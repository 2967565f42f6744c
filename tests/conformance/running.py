"""Running one function per party and gathering what each returned or raised."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vertikal.errors import MeshError
from vertikal.mesh.interface import Mesh

PATIENCE = 60.0
"""Seconds after which a run counts as hanging; no test comes near it."""

Program = Callable[[Mesh], Any]


@dataclass
class Outcome:
    """The results of the parties that returned, and the errors of those that raised."""

    results: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, BaseException] = field(default_factory=dict)

    def unwrap(self) -> dict[str, Any]:
        """The results; the error that began it if there was one."""
        for error in self.errors.values():
            if not isinstance(error, MeshError):
                raise error
        for error in self.errors.values():
            raise error
        return self.results


def start(name: str, work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(PATIENCE)
    hanging = [thread.name for thread in threads if thread.is_alive()]
    assert not hanging, f"still running after {PATIENCE:g} s: {hanging}"


def run(meshes: Mapping[str, Mesh], program: Program | Mapping[str, Program]) -> Outcome:
    """Run ``program`` (or each party's own) at every party, one thread each.

    As in a real run, a party that raises tells the others so. One that returns does not close, so
    several runs may follow one another on the same ends.
    """
    outcome = Outcome()

    def work(name: str) -> None:
        chosen = program[name] if isinstance(program, Mapping) else program
        try:
            outcome.results[name] = chosen(meshes[name])
        except BaseException as error:
            outcome.errors[name] = error
            meshes[name].fail(f"{type(error).__name__}: {error}")

    names = list(program) if isinstance(program, Mapping) else list(meshes)
    join([start(name, lambda name=name: work(name)) for name in names])
    return outcome
