"""The table of algorithms that a job can name: one line each.

A line says where the algorithm's object is. Its module is imported when the algorithm is first
asked for, so that a service starts without the numerical libraries; nothing else in the tree has to
import algorithms late for that.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vertikal.errors import InputError

if TYPE_CHECKING:
    from vertikal.algorithms.algorithm import Algorithm

ALGORITHMS: dict[str, str] = {
    "fdskl": "vertikal.algorithms.kernel_machine.algorithm:FDSKL",
    "avfkam": "vertikal.algorithms.kernel_machine.algorithm:AVFKAM",
    "kernel": "vertikal.algorithms.tuned.algorithm:KERNEL",
    "admm": "vertikal.algorithms.admm.algorithm:ADMM",
    "gram": "vertikal.algorithms.gram.algorithm:GRAM",
}
"""Name in job files → module and name of the `Algorithm`."""


def algorithm_named(name: str) -> Algorithm[Any, Any]:
    """Return the algorithm of this name; InputError if there is none."""
    if name not in ALGORITHMS:
        raise InputError.of("algorithm", f"one of {sorted(ALGORITHMS)}", name)
    module, _, attribute = ALGORITHMS[name].partition(":")
    algorithm: Algorithm[Any, Any] = getattr(import_module(module), attribute)
    return algorithm
