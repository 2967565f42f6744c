"""Predictions that stay on a device, and the objective there.

An exact solver looks at f of all rows several times in an iteration. `ResidentRows` has the few
operations that it does with them, `ResidentObjective` what it asks of the loss; only sums travel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from vertikal.compute.device.device_losses import DEVICE_LOSSES
from vertikal.solvers.objective import Objective, RowObjective

Array = npt.NDArray[Any]


class ResidentRows:
    """Numbers of all rows, (rows, outputs) in double precision, on a device."""

    # An array in front of the sign leaves the product to this class.
    __array_ufunc__ = None

    def __init__(self, values: Any) -> None:
        self.values = values

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    def __add__(self, other: ResidentRows | Array) -> ResidentRows:
        return ResidentRows(self.values + on_device(other, self.values.device))

    def __iadd__(self, other: ResidentRows | Array) -> ResidentRows:
        self.values += on_device(other, self.values.device)
        return self

    def __rmul__(self, factors: Array) -> ResidentRows:
        return ResidentRows(on_device(np.asarray(factors), self.values.device) * self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.values.cpu().numpy(), dtype)


class ResidentObjective(Objective):
    """R = (1/W) Σ_i w_i L(f_i, y_i), of predictions that are `ResidentRows`."""

    def __init__(self, objective: RowObjective, device: Any) -> None:
        self.penalty = objective.penalty
        self._plain, self._device = objective, device
        self._loss = DEVICE_LOSSES[objective.loss.name]
        self._targets = on_device(objective.targets, device)
        self._shares = on_device(objective.shares()[:, None], device)

    def start(self) -> Any:
        return self.resume(self._plain.start())

    def resume(self, predictions: Array) -> Any:
        return ResidentRows(on_device(predictions, self._device).clone())

    def value(self, f: Any) -> Array:
        return _sums(self._shares * self._loss.value(f.values, self._targets))

    def residuals(self, f: Any) -> Any:
        return ResidentRows(self._shares * self._loss.derivative(f.values, self._targets))

    def along(self, f: Any, direction: Any) -> tuple[Array, Array]:
        slopes = self._shares * self._loss.derivative(f.values, self._targets)
        bends = self._shares * self._loss.curvature(f.values, self._targets)
        d = on_device(direction, self._device)
        both = torch.stack(((slopes * d).sum(dim=0), (bends * d.square()).sum(dim=0)))
        both = both.cpu().numpy()
        return both[0], both[1]

    def shares(self) -> Array:
        return self._plain.shares()

    def stiffness(self) -> float:
        return self._plain.stiffness()


def on_device(values: Any, device: Any) -> Any:
    """Return real numbers as a tensor there, in double precision."""
    if isinstance(values, ResidentRows):
        return values.values
    return torch.from_numpy(np.ascontiguousarray(values, np.float64)).to(device)


def _sums(values: Any) -> Array:
    return np.asarray(values.sum(dim=0).cpu().numpy())
