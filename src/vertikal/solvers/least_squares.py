"""The x-step of ADMM sharing: regularised least squares on targets that change from round to round.

    minimise over x   λR(x) + (c/2)‖D x − t‖²

(the norm with the rows' weights, if they have any; Dᵀ below includes them.)
D and c stay, so what is dear is done once: a Cholesky factor of λI + cDᵀD, or, with more columns
than rows, of λI + cDDᵀ. Sparse columns are never multiplied out: conjugate gradients, begun at the
last x. Regularisers with an l1 part take accelerated proximal steps. Minima over a ball are in
`vertikal.solvers.bounded_least_squares`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.sparse.linalg import LinearOperator, cg, eigsh

from vertikal.solvers.design import Design
from vertikal.solvers.regularisers import Regulariser

Array = npt.NDArray[Any]

_CG_TOLERANCE = 1e-10
_PROX_STEPS = 2000
_PROX_TOLERANCE = 1e-9
_ROUNDING = 1e-12


class LeastSquares(ABC):
    """A solver of the x-step for one D, one R and one c."""

    _curvature: float

    @abstractmethod
    def solve(self, targets: Array, start: Array) -> Array:
        """x (width, outputs) for targets t (rows, outputs); iterations begin at ``start``."""

    def follow(self, x: Array, own: Array, shared: Array, pull: Array) -> Array:
        """`solve` for t = own − shared/c. The caller has own = Dx and pull = Dᵀ·shared at hand."""
        return self.solve(own - shared / self._curvature, x)


def least_squares(design: Design, regulariser: Regulariser, curvature: float) -> LeastSquares:
    """The solver that suits D and R; ``curvature`` is c."""
    if regulariser.absolute > 0:
        return ProximalSolver(design, regulariser, curvature)
    if design.is_sparse:
        return ConjugateGradients(design, regulariser, curvature)
    if design.width > design.rows:
        return DualCholesky(design, regulariser, curvature)
    return PrimalCholesky(design, regulariser, curvature)


class PrimalCholesky(LeastSquares):
    """x = (λI + cDᵀD)⁻¹ cDᵀt."""

    def __init__(self, design: Design, regulariser: Regulariser, curvature: float) -> None:
        self._design, self._curvature = design, curvature
        self._gram = design.gram()
        matrix = curvature * self._gram
        np.einsum("ii->i", matrix)[:] += regulariser.quadratic * design.penalised
        self._factor = factored(matrix)

    def solve(self, targets: Array, start: Array) -> Array:
        right = self._curvature * self._design.adjoint(targets)
        return np.asarray(cho_solve(self._factor, right, check_finite=False))

    def follow(self, x: Array, own: Array, shared: Array, pull: Array) -> Array:
        """cDᵀt = cDᵀD·x − pull: no pass over the rows."""
        right = self._curvature * (self._gram @ x) - pull
        return np.asarray(cho_solve(self._factor, right, check_finite=False))


class DualCholesky(LeastSquares):
    """x = cDᵀK⁻¹(t − 1b), K = λI + cDDᵀ, rows times √w.

    The intercept b makes the residuals sum to zero.
    """

    def __init__(self, design: Design, regulariser: Regulariser, curvature: float) -> None:
        self._design, self._curvature = design, curvature
        outer, self._free = design.outer()
        matrix = curvature * outer
        np.einsum("ii->i", matrix)[:] += regulariser.quadratic
        self._factor = factored(matrix)
        self._through = cho_solve(self._factor, self._free, check_finite=False)  # K⁻¹1

    def solve(self, targets: Array, start: Array) -> Array:
        rooted = self._design.rooted(targets)
        residual = cho_solve(self._factor, rooted, check_finite=False)  # K⁻¹t
        free = np.empty((0, targets.shape[1]))
        if self._free.size:
            free = np.linalg.solve(self._free.T @ self._through, self._free.T @ residual)
            residual = residual - self._through @ free
        x = self._curvature * self._design.rooted_adjoint(residual)
        x[~self._design.penalised] = free
        return np.asarray(x)


class ConjugateGradients(LeastSquares):
    """(λI + cDᵀD)x = cDᵀt by products with D only, column by column of t."""

    def __init__(self, design: Design, regulariser: Regulariser, curvature: float) -> None:
        self._design, self._curvature = design, curvature
        ridge = regulariser.quadratic * design.penalised
        # A column of zeros that nothing penalises would make the system singular.
        ridge = np.maximum(ridge, _ROUNDING * max(1.0, regulariser.quadratic))

        def product(x: Array) -> Array:
            column = x.reshape(-1, 1)
            moved = curvature * design.adjoint(design.forward(column))[:, 0]
            return np.asarray(moved + ridge * column[:, 0])

        self._operator = LinearOperator((design.width, design.width), matvec=product)

    def solve(self, targets: Array, start: Array) -> Array:
        right = self._curvature * self._design.adjoint(targets)
        x = np.empty_like(right)
        for j in range(right.shape[1]):
            x[:, j], _ = cg(
                self._operator,
                right[:, j],
                x0=start[:, j],
                rtol=_CG_TOLERANCE,
                maxiter=10 * self._design.width + 100,
            )
        return x


class ProximalSolver(LeastSquares):
    """Accelerated proximal gradient steps with restarts; the gradient is cDᵀ(Dx − t)."""

    def __init__(self, design: Design, regulariser: Regulariser, curvature: float) -> None:
        self._design, self._regulariser, self._curvature = design, regulariser, curvature
        small = not design.is_sparse and design.width <= design.rows
        self._gram = curvature * design.gram() if small else None
        self._step = 1 / max(self._largest(), 1e-300)

    def _product(self, x: Array) -> Array:
        if self._gram is not None:
            return np.asarray(self._gram @ x)
        return np.asarray(self._curvature * self._design.adjoint(self._design.forward(x)))

    def _largest(self) -> float:
        """The largest eigenvalue of cDᵀD, a little above it."""
        return 1.001 * self._curvature * largest_eigenvalue(self._design)

    def solve(self, targets: Array, start: Array) -> Array:
        right = self._curvature * self._design.adjoint(targets)
        penalised = self._design.penalised
        x = v = start
        momentum = 1.0
        for _ in range(_PROX_STEPS):
            moved = v - self._step * (self._product(v) - right)
            new = self._regulariser.prox(moved, penalised, self._step)
            change = new - x
            if float(((v - new) * change).sum()) > 0:  # uphill: forget the momentum
                momentum = 1.0
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            v = new + (momentum - 1) / following * change
            x, momentum = new, following
            size = float(np.abs(x).max(initial=0.0))
            if float(np.abs(change).max(initial=0.0)) <= _PROX_TOLERANCE * max(size, 1e-12):
                break
        return x


def largest_eigenvalue(design: Design) -> float:
    """σ_max(DᵀD), a little above it where it is found by iteration."""
    if not design.is_sparse and design.width <= 2000:
        return float(eigh(design.gram(), eigvals_only=True)[-1])
    if design.width < 3:
        unit = design.adjoint(design.forward(np.eye(design.width)))
        return float(np.linalg.eigvalsh(unit)[-1])
    operator = LinearOperator(
        (design.width, design.width),
        matvec=lambda x: design.adjoint(design.forward(x.reshape(-1, 1)))[:, 0],
    )
    start = np.full(design.width, design.width**-0.5)
    return float(eigsh(operator, 1, v0=start, return_eigenvectors=False, tol=1e-4)[0]) * 1.01


def factored(matrix: Array) -> Any:
    """A Cholesky factor; what rounding has made indefinite gets a little more on its diagonal."""
    diagonal = np.einsum("ii->i", matrix)
    ridge = _ROUNDING * max(float(diagonal.max(initial=0.0)), 1e-300)
    for _ in range(8):
        try:
            return cho_factor(matrix, lower=True, check_finite=False)
        except LinAlgError:
            diagonal += ridge
            ridge *= 10
    raise FloatingPointError("the x-step could not be factored; are there huge columns?")
