"""Least squares over a ball: the x-step of ADMM sharing where privacy bounds it.

    minimise over ‖x‖ ≤ radius   λ/2‖x‖² + (c/2)‖D x − t‖²

The multiplier μ ≥ 0 of the ball is a larger ridge, x(μ) = (λI + cDᵀD + μI)⁻¹cDᵀt, and the length of
x(μ) falls with μ. So all that is needed is a basis in which DᵀD is diagonal: its eigenvectors; with
more columns than rows those of DDᵀ; for sparse columns Ritz vectors, as many as the accuracy takes.
(Dᵀ includes the rows' weights, as in `vertikal.solvers.design`.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, eigh_tridiagonal

from vertikal.solvers.design import Design
from vertikal.solvers.least_squares import LeastSquares
from vertikal.solvers.regularisers import Regulariser

Array = npt.NDArray[Any]

ACCURACY = 1e-7
"""The largest distance of D·x from that of the exact minimum, in units of the radius."""

_ROUNDING = 1e-12
_CHECKED = 5


def ball_solver(
    design: Design, regulariser: Regulariser, curvature: float, radius: float
) -> LeastSquares:
    """The solver that suits D; ``curvature`` is c, and R must be the squared length."""
    ridge = max(regulariser.quadratic, _ROUNDING)
    if design.is_sparse:
        return RitzBall(design, ridge, curvature, radius)
    if design.width > design.rows:
        return DualBall(design, ridge, curvature, radius)
    return PrimalBall(design, ridge, curvature, radius)


class PrimalBall(LeastSquares):
    """With DᵀD = V diag(e) Vᵀ: x = V (λ + ce + μ)⁻¹ Vᵀ cDᵀt."""

    def __init__(self, design: Design, ridge: float, curvature: float, radius: float) -> None:
        self._design, self._curvature, self._radius = design, curvature, radius
        eigenvalues, self._vectors = eigh(design.gram())
        self._spectrum = curvature * np.maximum(eigenvalues, 0) + ridge

    def solve(self, targets: Array, start: Array) -> Array:
        right = self._vectors.T @ (self._curvature * self._design.adjoint(targets))
        return np.asarray(self._vectors @ _scaled(right, right, self._spectrum, self._radius))


class DualBall(LeastSquares):
    """With √W·DDᵀ·√W = U diag(e) Uᵀ: x = Dᵀ√W·U (λ + ce + μ)⁻¹ Uᵀ c√W·t, of length² Σ e_i g_i²."""

    def __init__(self, design: Design, ridge: float, curvature: float, radius: float) -> None:
        self._design, self._curvature, self._radius = design, curvature, radius
        eigenvalues, self._vectors = eigh(design.outer()[0])
        self._roots = np.sqrt(np.maximum(eigenvalues, 0))
        self._spectrum = curvature * np.square(self._roots) + ridge

    def solve(self, targets: Array, start: Array) -> Array:
        right = self._vectors.T @ (self._curvature * self._design.rooted(targets))
        measured = self._roots[:, None] * right
        shares = _scaled(right, measured, self._spectrum, self._radius)
        return self._design.rooted_adjoint(self._vectors @ shares)


class RitzBall(LeastSquares):
    """Lanczos vectors V of cDᵀD, begun at cDᵀt: x = V y, y the minimum in their span.

    The equation then misses r = βy_k·v_{k+1}, and D·x misses at most ‖r‖/2√(cλ): subtract the two
    optimality conditions, c‖D(x − x*)‖² + λ‖x − x*‖² ≤ ⟨r, x − x*⟩.
    """

    def __init__(self, design: Design, ridge: float, curvature: float, radius: float) -> None:
        self._design, self._curvature = design, curvature
        self._ridge, self._radius = ridge, radius
        heaviest = curvature * ridge * design.heaviest
        self._allowed = 2 * ACCURACY * radius * math.sqrt(heaviest)

    def solve(self, targets: Array, start: Array) -> Array:
        right = self._curvature * self._design.adjoint(targets)
        return np.column_stack([self._column(column) for column in right.T])

    def _column(self, right: Array) -> Array:
        length = float(np.linalg.norm(right))
        if length == 0:
            return np.zeros_like(right)
        allowed = max(self._allowed, 1e-14 * length)
        basis = np.empty((64, len(right)))
        basis[0] = right / length
        diagonal: list[float] = []
        beside: list[float] = []
        while True:
            k = len(diagonal) + 1
            product = self._design.adjoint(self._design.forward(basis[k - 1][:, None]))[:, 0]
            product *= self._curvature
            diagonal.append(float(product @ basis[k - 1]))
            for _ in range(2):  # against all earlier ones, twice: rounding would bring them back
                product -= basis[:k].T @ (basis[:k] @ product)
            beta = float(np.linalg.norm(product))
            if k % _CHECKED == 0 or k == len(right) or beta <= allowed / self._radius:
                y = self._within(diagonal, beside, length)
                if beta * abs(y[-1]) <= allowed or k == len(right):
                    return np.asarray(basis[:k].T @ y)
            if k == len(basis):
                basis = np.vstack((basis, np.empty_like(basis)))
            basis[k] = product / beta
            beside.append(beta)

    def _within(self, diagonal: list[float], beside: list[float], length: float) -> Array:
        """The minimum in the span of the Lanczos vectors, where cDᵀD is tridiagonal."""
        values, vectors = eigh_tridiagonal(diagonal, beside)
        right = length * vectors[0][:, None]
        spectrum = np.maximum(values, 0) + self._ridge
        return np.asarray((vectors @ _scaled(right, right, spectrum, self._radius))[:, 0])


def _scaled(right: Array, measured: Array, spectrum: Array, radius: float) -> Array:
    """right/(spectrum + μ), μ ≥ 0 the least for which ‖measured/(spectrum + μ)‖ ≤ radius."""
    shifts = [_shift(column, spectrum, radius) for column in measured.T]
    return np.asarray(right / (spectrum[:, None] + np.array(shifts)))


def _shift(measured: Array, spectrum: Array, radius: float) -> float:
    """That μ for one column, by bisection."""
    if float(np.linalg.norm(measured / spectrum)) <= radius:
        return 0.0
    low, high = 0.0, float(np.linalg.norm(measured)) / radius
    for _ in range(200):
        middle = (low + high) / 2
        if float(np.linalg.norm(measured / (spectrum + middle))) > radius:
            low = middle
        else:
            high = middle
        if high - low <= _ROUNDING * high:
            break
    return high
