"""L-BFGS to tolerance on a regularised `Objective` (``solver="exact"``).

Preconditioned with a Cholesky factor of κ·ΦᵀWΦ/W + λI from a subsample of the rows. One iteration
costs one forward and one adjoint pass. Several outputs are separate problems that share their
passes.

With several label parties each holds a block of α and of Φ's columns, and runs this same code; f
and the inner products are sums over them (`Sums`). All see the same sums, so all take the same
decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from vertikal.solvers.feature_operator import FeatureOperator
from vertikal.solvers.objective import Objective, column_products

Array = npt.NDArray[Any]

MEMORY = 10
"""Pairs of steps and gradient changes that L-BFGS keeps."""

LONG_MEMORY = 30
"""Pairs kept where Φ offers no Gram matrix: without a preconditioner they halve the passes."""

SAMPLE = 8192
"""The most rows that a preconditioner is made of."""

FULL_STEP_SLOPE = 0.5
"""Share of the slope that a full step may leave without being searched on."""

SEARCHED_SLOPE = 0.1
"""Share of the slope that a search leaves."""

_SEARCH_ROUNDS = 12


class Sums(Protocol):
    """Adds up what the label parties hold, and gives each of them the total."""

    def rows(self, partial: Array) -> Array: ...
    def scalars(self, partial: Array) -> Array: ...


class Alone:
    """The sums of a single label party: its own part is all there is."""

    def rows(self, partial: Array) -> Array:
        return partial

    def scalars(self, partial: Array) -> Array:
        return partial


@dataclass
class Solution:
    """Coefficients (width, outputs), and how the solver got there."""

    coefficients: Array
    iterations: int = 0
    passes: int = 0
    converged: bool = False
    objective: list[float] = field(default_factory=list)
    gradient: list[float] = field(default_factory=list)
    predictions: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """f of all rows, (rows, outputs)."""
    first_gradient: Array | None = None
    """gᵀP⁻¹g where the solver first began, (outputs,), which the tolerance refers to."""
    curvature: tuple[tuple[Array, Array], ...] = ()
    """Last steps and the changes of the loss's gradient along them, without the penalty's part."""


@dataclass(frozen=True)
class Preconditioner:
    """g ↦ P⁻¹g, P = κ·ΦᵀSΦ + λI on a sample of the rows, or P = κ + λ without Φ's Gram matrix."""

    apply: Callable[[Array], Array]
    offered: bool
    """True if Φ offered its Gram matrix."""


def solve(
    operator: FeatureOperator,
    objective: Objective,
    *,
    sums: Sums | None = None,
    tolerance: float = 1e-3,
    max_iterations: int = 200,
    sample: Array | None = None,
    report: Callable[[Solution], None] = lambda _: None,
    preconditioner: Preconditioner | None = None,
    start: Solution | None = None,
    enough: Callable[[Array], bool] = lambda _: False,
) -> Solution:
    """Minimise ``objective`` until the preconditioned gradient has shrunk by ``tolerance``.

    ``sample`` are the row numbers the preconditioner is made of (all rows by default); it must be
    the same at all label parties. ``report`` is called after each iteration. A ``preconditioner``
    of a similar problem spares making one, and ``start``, the solution of one with the same
    constants, most iterations. Where Φ offers no Gram matrix, the curvature that was seen on the
    way there takes the place of a preconditioner. ``enough`` is asked after each step, and ends the
    solver by what it sees of f (rows, outputs).
    """
    sums = sums or Alone()
    operator, objective = operator.beside(objective)
    f = objective.start() if start is None else objective.resume(start.predictions)
    rows, outputs = f.shape
    solution = Solution(np.zeros((operator.width, outputs)))
    if preconditioner is None:
        chosen = np.arange(rows) if sample is None else sample
        preconditioner = make_preconditioner(operator, objective, chosen)
    precondition = preconditioner.apply
    history = _History(outputs, MEMORY if preconditioner.offered else LONG_MEMORY)

    a = solution.coefficients  # α, (width, outputs)
    penalty_value = np.zeros(outputs)  # ‖α‖²
    if start is not None:
        a += start.coefficients
        penalty_value = sums.scalars(column_products(a, a))
        solution.first_gradient = start.first_gradient
        if not preconditioner.offered:
            for step, of_loss in start.curvature:
                change = of_loss + objective.penalty * step
                history.append(step, change, precondition(change))

    def gradient() -> Array:
        solution.passes += 1
        return operator.adjoint(objective.residuals(f)) + objective.penalty * a

    g = gradient()
    p = precondition(g)
    for iteration in range(max_iterations + 1):
        tables = sums.scalars(history.partial(g, p))
        history.update(tables)
        size = history.gradient_size  # gᵀP⁻¹g, (outputs,)
        if solution.first_gradient is None:
            solution.first_gradient = size
        value = objective.value(f) + objective.penalty / 2 * penalty_value
        solution.objective.append(float(value.sum()))
        solution.gradient.append(float(np.sqrt(np.max(size))))
        report(solution)
        open_ = size > tolerance**2 * np.maximum(solution.first_gradient, 1e-300)
        solution.converged = not open_.any()
        if solution.converged or iteration == max_iterations or (iteration and enough(f)):
            break
        d = np.where(open_, history.direction(), 0.0)
        pairs = ((a, a), (a, d), (d, d), (g, d))
        aa, ad, dd, gd = sums.scalars(np.stack([column_products(u, v) for u, v in pairs]))
        # A direction that does not descend comes of rounding only: nothing more can be gained.
        d = np.where(gd < 0, d, 0.0)
        if not (gd < 0).any():
            break
        solution.passes += 1
        fd = sums.rows(operator.forward(d))  # Φd, (rows, outputs)

        def slope(t: Array, f: Array = f, fd: Array = fd, ad: Array = ad, dd: Array = dd) -> Any:
            first, second = objective.along(f + t * fd, fd)
            return (
                first + objective.penalty * (ad + t * dd),
                second + objective.penalty * dd,
            )

        t = line_search(slope, np.minimum(gd, 0.0))
        a += t * d
        f += t * fd
        penalty_value = aa + 2 * t * ad + np.square(t) * dd
        previous, g = g, gradient()
        q, p = p, precondition(g)
        history.append(t * d, g - previous, p - q)
        solution.iterations += 1
    solution.predictions = np.asarray(f)
    solution.curvature = tuple((s, y - objective.penalty * s) for s, y in history.pairs())
    return solution


def line_search(slope: Callable[[Array], tuple[Array, Array]], start: Array) -> Array:
    """Step lengths t (outputs,) at which each convex function of t has nearly levelled off.

    A Newton search inside a bracket, for all outputs in step. Since f(α + t·d) = f + t·Φd, it needs
    no pass over the features.

    ``slope(t)`` returns first and second derivative at t; ``start`` is the slope at 0, not
    positive. The full step t = 1 is taken where it already leaves at most half of the slope.
    """
    steps = np.where(start < 0, 1.0, 0.0)
    low, high = np.zeros_like(steps), np.full_like(steps, np.inf)
    tolerance = FULL_STEP_SLOPE
    for _ in range(_SEARCH_ROUNDS):
        first, second = slope(steps)
        done = np.abs(first) <= tolerance * np.abs(start)
        if done.all():
            break
        tolerance = SEARCHED_SLOPE
        low = np.where(first < 0, steps, low)
        high = np.where(first > 0, steps, high)
        newton = steps - np.divide(first, second, out=np.full_like(first, np.inf), where=second > 0)
        widest = np.where(np.isinf(high), 4 * steps, high)
        inside = (newton > low) & (newton < widest)
        middle = np.where(np.isinf(high), 2 * steps, (low + high) / 2)
        steps = np.where(done, steps, np.where(inside, newton, middle))
    return np.asarray(steps)


class _History:
    """L-BFGS in products only: the last pairs (s, y), z = P⁻¹y, and the table of inner products.

    The two-loop recursion is run on the table, so that one sum of scalars serves an iteration.
    """

    def __init__(self, outputs: int, memory: int = MEMORY) -> None:
        self._outputs = outputs
        self._memory = memory
        self._s: list[Array] = []
        self._y: list[Array] = []
        self._z: list[Array] = []
        self._p: Array = np.zeros(0)
        self._tables: Array = np.zeros(0)

    def append(self, s: Array, y: Array, z: Array) -> None:
        for kept, new in ((self._s, s), (self._y, y), (self._z, z)):
            kept.append(new)
            del kept[: -self._memory]

    def pairs(self) -> list[tuple[Array, Array]]:
        """The pairs (s, y) that are kept, oldest first."""
        return list(zip(self._s, self._y, strict=True))

    def partial(self, g: Array, p: Array) -> Array:
        """This party's part of all inner products that the next direction needs."""
        self._p = p
        s, y, z = self._s, self._y, self._z
        m = len(s)
        table = np.empty((2 * m * m + 2 * m + 1, self._outputs))
        for o in range(self._outputs if m else 0):
            # Rows are pairs: one small product of matrices instead of m² inner products.
            past_s, past_y, past_z = (np.array([v[:, o] for v in kept]) for kept in (s, y, z))
            table[: m * m, o] = (past_s @ past_y.T).ravel()
            table[m * m : 2 * m * m, o] = (past_y @ past_z.T).ravel()
            table[2 * m * m : 2 * m * m + m, o] = past_s @ g[:, o]
            table[2 * m * m + m : -1, o] = past_y @ p[:, o]
        table[-1] = column_products(g, p)
        return table

    def update(self, tables: Array) -> None:
        self._tables = tables

    @property
    def gradient_size(self) -> Array:
        """gᵀP⁻¹g, (outputs,)."""
        return np.asarray(self._tables[-1])

    def direction(self) -> Array:
        """−H·g, H the L-BFGS inverse Hessian started from P⁻¹ times a scalar."""
        m, t = len(self._s), self._tables
        sy = t[: m * m].reshape(m, m, self._outputs)
        yz = t[m * m : 2 * m * m].reshape(m, m, self._outputs)
        sg, yp = t[2 * m * m : 2 * m * m + m], t[2 * m * m + m : 2 * m * m + 2 * m]
        # A pair without curvature says nothing; its multiplier stays zero.
        rho = [
            np.where(sy[i, i] > 0, 1 / np.where(sy[i, i] > 0, sy[i, i], 1.0), 0.0) for i in range(m)
        ]
        # Backwards: q = g − Σ a_i y_i.
        back = np.zeros((m, self._outputs))
        for i in reversed(range(m)):
            back[i] = rho[i] * (sg[i] - (back[i + 1 :] * sy[i, i + 1 :]).sum(axis=0))
        scale = np.ones(self._outputs)
        if m:
            good = (sy[-1, -1] > 0) & (yz[-1, -1] > 0)
            scale = np.where(good, sy[-1, -1] / np.where(good, yz[-1, -1], 1.0), 1.0)
        # Forwards: r = scale·P⁻¹q + Σ s_i (a_i − b_i).
        forth = np.zeros((m, self._outputs))
        for i in range(m):
            yr = scale * (yp[i] - (back * yz[i]).sum(axis=0))
            yr = yr + (forth[:i] * sy[:i, i]).sum(axis=0)
            forth[i] = back[i] - rho[i] * yr
        r = scale * self._p
        for i in range(m):
            r = r - (scale * back[i]) * self._z[i] + forth[i] * self._s[i]
        return -np.asarray(r)


def sample_rows(rows: int, width: int, seed: int) -> Array:
    """The rows that a preconditioner is made of: about four per feature are worth their cost.

    Beyond `SAMPLE` they are not: the matrix grows with the square of the features already.
    """
    size = min(4 * width + 256, SAMPLE)
    if size >= rows:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, size, replace=False))


def make_preconditioner(
    operator: FeatureOperator, objective: Objective, sample: Array
) -> Preconditioner:
    """Make P of κ·Φ[sample]ᵀSΦ[sample] + λI; without Φ's Gram matrix, P = λ + κ."""
    rows, weights = _sampled(objective, sample)
    apply = operator.inverse(rows, weights, objective.stiffness(), objective.penalty)
    if apply is not None:
        return Preconditioner(apply, offered=True)
    return factored(operator.gram(rows, weights), objective)


def sampled_gram(operator: FeatureOperator, objective: Objective, sample: Array) -> Array | None:
    """Compute ΦᵀSΦ on a sample of the rows, S their weights in the Hessian; None if not offered."""
    return operator.gram(*_sampled(objective, sample))


def _sampled(objective: Objective, sample: Array) -> tuple[Array, Array]:
    """Return the rows of the sample that count, and their weights in the Hessian."""
    shares = objective.shares()
    sample = sample[shares[sample] > 0] if shares[sample].any() else np.flatnonzero(shares)
    return sample, shares[sample] * (shares.sum() / shares[sample].sum())


def factored(gram: Array | None, objective: Objective) -> Preconditioner:
    """Factor κ·gram + λI, which overwrites ``gram``."""
    kappa = objective.stiffness()
    if gram is None:
        return Preconditioner(lambda g: g / (objective.penalty + kappa), offered=False)
    gram *= kappa
    diagonal = np.einsum("ii->i", gram)
    lifted = diagonal.copy()
    ridge = objective.penalty
    for _ in range(8):
        try:
            lifted += ridge
            diagonal[...] = lifted
            # A symmetric matrix is its own transpose, which LAPACK factors where it lies.
            factor = cho_factor(gram.T, lower=True, overwrite_a=True, check_finite=False)
            return Preconditioner(partial(cho_solve, factor, check_finite=False), offered=True)
        except LinAlgError:
            # A subsample in single precision can be indefinite by rounding: add more of the ridge.
            # Of the matrix the half below the diagonal is left, from which the other follows.
            ridge = max(10 * ridge, 1e-7 * float(lifted.max()))
            np.copyto(gram, gram.T, where=np.tri(len(gram), k=-1, dtype=bool).T)
    raise FloatingPointError("the preconditioner could not be factored; are there huge weights?")
