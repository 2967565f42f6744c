"""A shard as training makes them, without training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.data.scaling import Scaling


def shard_of(directions=32, **changes):
    settings = FdsklSettings(
        parties=("bank", "shop"), label_parties=("bank",), n_components=directions
    )
    generator = np.random.default_rng(directions)
    made = Shard(
        "bank",
        settings,
        ("x", "y"),
        Scaling([1.0, -2.0], [0.5, 3.0]),
        1.5,
        bytes(range(32)),
        generator.normal(size=(directions, 1)),
    )
    return replace(made, **changes)
