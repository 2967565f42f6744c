"""Parameters of estimators and settings, with options written singly: ``solver__n_steps=3``."""

from __future__ import annotations

from typing import Any

import msgspec

NAMELESS = ("exact", "open")


def grouped(**given: Any) -> dict[str, Any]:
    """The same with options gathered into the choices that they belong to.

    Options of a choice that has none, such as ``solver="exact"``, are left out: a test's defaults
    may have them for when another choice is made.
    """
    found = {name: value for name, value in given.items() if "__" not in name}
    for name, value in given.items():
        choice, nested, option = name.partition("__")
        if not nested or found.get(choice, DEFAULTS[choice]) in NAMELESS:
            continue
        chosen = found.get(choice, DEFAULTS[choice])
        if isinstance(chosen, str):
            chosen = {"name": chosen}
        elif isinstance(chosen, msgspec.Struct):
            chosen = msgspec.to_builtins(chosen)
        found[choice] = {**chosen, option: value}
    return found


DEFAULTS = {"solver": "exact", "disclosure": "open", "feature_map": "fourier", "kernel": None}
