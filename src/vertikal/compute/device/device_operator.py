"""Φ on a device: the ring elements lie there as bytes, and all products with them happen there.

A solver gets vectors of numpy, as from any operator. With `beside` predictions stay on the device
as well, and only vectors of as many numbers as there are features travel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from vertikal.compute import open_operator
from vertikal.compute.device.phase_decoding import Decoding
from vertikal.compute.device.resident_objective import ResidentObjective, ResidentRows, on_device
from vertikal.compute.device.transfer import to_device
from vertikal.compute.open_operator import OpenOperator
from vertikal.kernels.feature_map import FeatureMap
from vertikal.solvers.feature_operator import ALL, FeatureOperator
from vertikal.solvers.objective import Objective, RowObjective

Array = npt.NDArray[Any]


class DeviceOperator(OpenOperator):
    """Φ decoded from ring elements on a device.

    ``elements`` (rows, elements) are those of all rows: an array, or a tensor of signed integers
    that lies on the device already.
    """

    def __init__(
        self, feature_map: FeatureMap, elements: Any, device: Any, *, fused: bool = True
    ) -> None:
        self.rows, self.width = len(elements), feature_map.width
        self._map, self._device, self._fused = feature_map, device, fused
        self._decoding = Decoding(feature_map, device, fused=fused)
        self._host: Array | None = None
        if isinstance(elements, np.ndarray):
            self._host = elements
            elements = to_device(elements, device)
        self._elements = elements
        self._exact: Any = None
        if self.rows * self.width <= open_operator.PRECISE:
            self._exact = self._decoding.decode(elements, torch.float64)

    @property
    def cached(self) -> Array:  # type: ignore[override]
        """The elements as an array, fetched from the device where they were made there."""
        if self._host is None:
            signed = self._elements.cpu().numpy()
            kept = self._map.kept_dtype or self._map.ring.dtype
            self._host = signed if signed.dtype.kind == "f" else signed.view(kept)
        return self._host

    def with_elements(self, elements: Array) -> DeviceOperator:
        return DeviceOperator(self._map, elements, self._device, fused=self._fused)

    def forward(
        self, coefficients: Array, rows: Array | None = None, columns: slice = ALL
    ) -> Array:
        return _array(self.forward_there(coefficients, rows, columns))

    def adjoint(self, residuals: Array, rows: Array | None = None, columns: slice = ALL) -> Array:
        return _array(self.adjoint_there(on_device(residuals, self._device), rows, columns))

    def gram(self, rows: Array, weights: Array, columns: slice = ALL) -> Array:
        return _array(self._gram(rows, weights, columns).double())

    def inverse(
        self, rows: Array, weights: Array, stiffness: float, ridge: float
    ) -> Callable[[Array], Array] | None:
        """Factor κ·ΦᵀWΦ + λI on the device, and keep its inverse there.

        A triangular matrix is solved row after row, the inverse multiplied by at once.
        """
        matrix = self._gram(rows, weights, ALL).double() * stiffness
        diagonal = torch.diagonal(matrix)
        for _ in range(8):
            diagonal += ridge
            factor, failed = torch.linalg.cholesky_ex(matrix)
            if not int(failed):
                inverse = torch.cholesky_inverse(factor)
                return lambda g: _array(inverse @ on_device(g, self._device))
            # A subsample in single precision can be indefinite by rounding: add more of the ridge.
            ridge = max(10 * ridge, 1e-7 * float(diagonal.max()))
        return None

    def restricted(self, rows: Array) -> FeatureOperator:
        chosen = self._elements[_numbers(rows, self._device)]
        return DeviceOperator(self._map, chosen, self._device, fused=self._fused)

    def beside(self, objective: Objective) -> tuple[FeatureOperator, Objective]:
        if not isinstance(objective, RowObjective):
            return self, objective
        return _BesideOperator(self), ResidentObjective(objective, self._device)

    def forward_there(self, coefficients: Array, rows: Array | None, columns: slice) -> Any:
        """Return Φ[rows, columns] @ coefficients on the device, in double precision."""
        weights = on_device(coefficients, self._device)
        if self._exact is not None:
            return self._of(self._exact, rows)[:, columns] @ weights
        if columns != ALL:
            every = torch.zeros(
                (self.width, weights.shape[1]), dtype=torch.float64, device=self._device
            )
            every[columns] = weights
            weights = every
        return self._decoding.forward(self._of(self._elements, rows), weights)

    def adjoint_there(self, residuals: Any, rows: Array | None, columns: slice) -> Any:
        """Return Φ[rows, columns].T @ residuals on the device, in double precision."""
        if self._exact is not None:
            return self._of(self._exact, rows)[:, columns].T @ residuals
        return self._decoding.adjoint(self._of(self._elements, rows), residuals)[columns]

    def _gram(self, rows: Array, weights: Array, columns: slice) -> Any:
        given = on_device(weights, self._device)
        if self._exact is not None:
            part = self._of(self._exact, rows)[:, columns]
            return (part.T * given) @ part
        return self._decoding.gram(self._of(self._elements, rows), given, columns)

    def _of(self, matrix: Any, rows: Array | None) -> Any:
        return matrix if rows is None else matrix[_numbers(rows, self._device)]


class _BesideOperator(FeatureOperator):
    """The same Φ for a solver whose predictions stay on the device."""

    def __init__(self, whole: DeviceOperator) -> None:
        self.rows, self.width = whole.rows, whole.width
        self._whole = whole
        self.inverse = whole.inverse  # type: ignore[method-assign]
        self.gram = whole.gram  # type: ignore[method-assign]

    def forward(self, coefficients: Array, rows: Array | None = None, columns: slice = ALL) -> Any:
        return ResidentRows(self._whole.forward_there(coefficients, rows, columns))

    def adjoint(self, residuals: Any, rows: Array | None = None, columns: slice = ALL) -> Array:
        return _array(self._whole.adjoint_there(residuals.values, rows, columns))


def _array(tensor: Any) -> Array:
    return np.asarray(tensor.cpu().numpy())


def _numbers(rows: Array, device: Any) -> Any:
    return torch.from_numpy(np.asarray(rows, np.int64)).to(device)
