"""The objective of labels in parts: the sum of the losses of the parts.

Each label party computes the loss of its own rows; values, derivatives and residuals are sums over
the label parties (`LabelParts`). All of them see the same sums, and so take the same steps. A label
party multiplies the residuals of all rows by its own features, so the label parties learn these
residuals, and with them one another's labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.labels.parts import LabelParts
from vertikal.solvers.objective import Objective

Array = npt.NDArray[Any]


class PartsObjective(Objective):
    """R = Σ_ℓ s_ℓ R_ℓ over the parts ℓ of the label parties, R_ℓ the mean loss of part ℓ.

    ``share`` is s_ℓ of this party's part, ``own`` its R_ℓ.
    """

    def __init__(self, own: Objective, parts: LabelParts, share: float) -> None:
        self.penalty = own.penalty
        self._own, self._parts, self._share = own, parts, share
        rows = len(own.shares())
        # Slopes of one row in many are small; so many times as large they keep their digits.
        self._scale = float(rows)
        self._shares = self._joined(own.shares()[:, None])[:, 0]

    def start(self) -> Array:
        return self._own.start()

    def value(self, f: Array) -> Array:
        return self._parts.total(self._share * self._own.value(f))

    def residuals(self, f: Array) -> Array:
        return self._joined(self._own.residuals(f))

    def along(self, f: Array, direction: Array) -> tuple[Array, Array]:
        first, second = self._parts.total(self._share * np.stack(self._own.along(f, direction)))
        return first, second

    def shares(self) -> Array:
        return self._shares

    def stiffness(self) -> float:
        return float(self._parts.total(np.array([self._share * self._own.stiffness()]))[0])

    def _joined(self, values: Array) -> Array:
        return self._parts.joined(self._share * self._scale * values) / self._scale
