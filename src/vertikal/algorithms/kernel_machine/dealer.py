"""What a dealer without columns does before a training run: all that does not wait for the others.

Sealed, that is everything it will send; with ``disclosure="values"`` the correlation of the
features, which is nearly everything (products are dealt for as they are asked for).
"""

from __future__ import annotations

import numpy as np

from vertikal.algorithms.kernel_machine.sealed import minimise, steps_of, training_block
from vertikal.algorithms.kernel_machine.sealed_residuals import SquareResiduals
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.values import block_of, blocks_of
from vertikal.ring.integers import Ring
from vertikal.secure.dealing_ahead import DealingAhead


def prepare(preparing: DealingAhead, settings: FdsklSettings, rows: int) -> None:
    """Run the dealer's part of a training run on ``rows`` rows, alone."""
    (owner,) = settings.label_parties
    width, dtype = settings.n_components, Ring(settings.ring_bits).dtype
    if not settings.seals:
        hidden = preparing.hidden(block_of(settings, owner, rows, training=True))
        for block in blocks_of(slice(0, rows), width):
            hidden.add(np.zeros((block.stop - block.start, width), dtype))
        return
    residual_map = SquareResiduals(rows, settings.outputs, None)
    steps = steps_of(settings, rows, residual_map)
    sealed = preparing.sealed(training_block(settings, rows, residual_map, steps))
    for block in blocks_of(slice(0, rows), width):
        sealed.add(np.zeros((block.stop - block.start, width), dtype))
    residual_map.begin(sealed, steps)
    minimise(sealed, residual_map, steps)
