"""`vertikal` in a process that kills itself (SIGKILL) when it comes to a certain place.

    python killed.py PLACE party start party.toml

A place is reached in the midst of the work of one stage; `PLACES` says where each is.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def is_about_common_rows(_party: Any, _name: str, disclosure: Any) -> bool:
    return disclosure.name == "common rows"


def says_that_it_has_trained(_mesh: Any, _to: str, tag: str, payload: Any) -> bool:
    from vertikal.node.runs.party_run import TRAINED

    return tag == "stage" and payload["stage"] == TRAINED


PLACES = {
    # place: (module, class or "", function, which call of it, which calls count)
    "alignment": ("vertikal.secure.psi.intersection", "Intersection", "gather", 1),
    "spread": ("vertikal.secure.psi.intersection", "Intersection", "spread", 1),
    "sum": ("vertikal.secure.sums.pads", "PaddedSum", "finish", 3),
    "hearing": ("vertikal.party.party", "Party", "hear", 1, is_about_common_rows),
    "sharing": ("vertikal.secure.sealed.sealed_features", "SealedFeatures", "forward", 3),
    "block": ("vertikal.node.runs.checkpoint_folder", "CheckpointFolder", "save_block", 3),
    "solver": ("vertikal.solvers.lbfgs", "", "line_search", 2),
    "machine": ("vertikal.algorithms.gram.machine", "", "fit", 1),
    "serving": ("vertikal.secure.hidden.hidden_features", "HiddenFeatures", "serve", 1),
    "round": ("vertikal.algorithms.admm.centre", "CentralNode", "step", 3),
    "model": ("vertikal.node.models.store", "", "sync_folder", 1),
    "written": ("vertikal.mesh.interface", "Mesh", "send", 1, says_that_it_has_trained),
    "judging": ("vertikal.node.runs.measuring.fits", "", "count_prediction", 2),
    "choosing": ("vertikal.node.runs.measuring.search", "", "measure", 2),
    "measuring": ("vertikal.node.runs.measuring.evaluation", "", "measure_parts", 1),
    "prediction": ("vertikal.algorithms.kernel_machine.algorithm", "KernelMachine", "predict", 1),
}


def arm(place: str) -> None:
    """Replace the function of this place by one that does not survive."""
    module_name, class_name, name, wanted, *rest = PLACES[place]
    (counts,) = rest or (lambda *arguments, **options: True,)
    owner: Any = import_module(module_name)
    owner = getattr(owner, class_name) if class_name else owner
    original: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def deadly(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += bool(counts(*arguments, **options))
        if calls == wanted:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **options)

    setattr(owner, name, deadly)


if __name__ == "__main__":
    arm(sys.argv.pop(1))
    from vertikal.cli import main

    main()
