"""The linear system: an attack on phases by somebody who knows the directions.

The phase of row i under direction j is ω_jᵀx_i + b_j mod 2π. Its holder takes its own part off; the
difference of two rows no longer contains b_j, and D directions are D equations for the difference
of the two people's hidden columns. Without reduction mod 2π they are solved at once. With it the
number of turns in each equation is unknown, but most are zero where the bandwidth is any good, so
that a solution can be approached which gets more of them right in each round. More equations than
unknowns make the residual a proof: it falls to rounding only if the solution is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]

SPARE = 8
"""Equations beyond the unknowns; with fewer a wrong solution could fit by chance."""

_STEPS = 50
_SETTLED = 1e-13
_SLACK = 1.5
_EXACT = 1e-9


@dataclass(frozen=True)
class Recovered:
    """The attacker's answer for each pair of rows, and its own proof that it is right."""

    differences: Array  # (pairs, columns): hidden columns of the first row minus the second's
    residuals: Array  # (pairs,): root mean square of what the equations leave, in radians
    converged: Array  # (pairs,): the residual is no larger than rounding explains

    def rounded(self, unit: float = 1.0) -> Array:
        """The differences of columns that only take multiples of ``unit``."""
        return np.rint(self.differences / unit) * unit


def recover_differences(
    phases: Array,
    own_phases: Array,
    hidden_directions: Array,
    ring: Ring,
    pairs: Array,
    *,
    hidden_parties: int = 1,
    restarts: int = 16,
    random_state: int = 0,
) -> Recovered:
    """The inference attack that FDSKL Theorem 7 says cannot succeed (the paper's Definition 6).

    ``phases`` (rows, D) are the summed ring elements, ``own_phases`` (rows, D) the attacker's own
    part of them, ``hidden_directions`` (columns, D) the others' coordinates of ω, ``pairs`` (pairs,
    2) row numbers. Each of the ``hidden_parties`` has rounded once per row and direction.
    """
    A = _equations(phases, own_phases, hidden_directions, pairs, SPARE)
    hidden = phases - own_phases
    # A ring element read as signed is the angle's principal value.
    signed = np.dtype(f"int{ring.bits}")
    gaps = (hidden[pairs[:, 0]] - hidden[pairs[:, 1]]).view(signed) / ring.steps  # (pairs, D)
    solver = np.linalg.pinv(A)  # (columns, D)
    spare = A.shape[0] - A.shape[1]
    # Two roundings of variance 1/12 per hidden party and pair of rows.
    expected = np.sqrt(hidden_parties / 6) / ring.steps

    best = np.zeros((len(pairs), A.shape[1]))
    residuals = np.full(len(pairs), np.inf)
    generator = np.random.default_rng(random_state)
    for restart in range(1 + restarts):
        open_ = np.flatnonzero(residuals > _SLACK * expected)
        if not len(open_):
            break
        # Another half of the equations, another start: which of them wrap is a matter of luck.
        some = np.ones(len(A), bool) if restart == 0 else generator.random(len(A)) < 0.5
        start = gaps[open_][:, some] @ np.linalg.pinv(A[some]).T
        found = _unwrap(gaps[open_], A, solver, start)
        left = np.sqrt(np.square(_wrapped(gaps[open_] - found @ A.T)).sum(axis=1) / spare)
        better = left < residuals[open_]
        best[open_[better]], residuals[open_[better]] = found[better], left[better]
    return Recovered(best, residuals, residuals <= _SLACK * expected)


def recover_differences_exact(
    projections: Array, own_projections: Array, hidden_directions: Array, pairs: Array
) -> Recovered:
    """The same on the papers' own numbers, ωᵀx + b in floating point, which are never reduced.

    ``projections`` (rows, D) are the sums that FDSKL Algorithm 3 gives its label party,
    ``own_projections`` the attacker's own part. D need only reach the number of hidden columns.
    """
    A = _equations(projections, own_projections, hidden_directions, pairs, 0)
    hidden = projections - own_projections
    gaps = hidden[pairs[:, 0]] - hidden[pairs[:, 1]]
    differences = np.linalg.lstsq(A, gaps.T, rcond=None)[0].T
    residuals = np.sqrt(np.square(gaps - differences @ A.T).mean(axis=1))
    return Recovered(differences, residuals, residuals <= _EXACT * (1 + np.abs(gaps).max(axis=1)))


def all_against(row: int, rows: int) -> Array:
    """The pairs (i, row) of every other row i: together, all records up to one person's."""
    others = np.delete(np.arange(rows), row)
    return np.stack((others, np.full(rows - 1, row)), axis=1)


def _unwrap(gaps: Array, A: Array, solver: Array, start: Array) -> Array:
    """Solutions (pairs, columns) of A δ = gap mod 2π, each the nearest one found from its start.

    Wrapped equations shrink the least-squares solution but do not turn it, since E[ω·g(ωᵀδ)] is
    parallel to δ for every odd g; this is why it is a good start.
    """
    found = start.copy()
    for _ in range(_STEPS):
        residual = _wrapped(gaps - found @ A.T)
        # Fisher scoring of a von Mises model: equations whose turns are still in doubt, near ±π,
        # hardly count, where least squares would trust them most.
        sureness = np.maximum(np.cos(residual).mean(axis=1, keepdims=True), 0.3)
        change = np.sin(residual) @ solver.T / sureness
        found += change
        if np.abs(change).max(initial=0.0) < _SETTLED:
            break
    return found


def _wrapped(angles: Array) -> Array:
    """Angles in [−π, π)."""
    return np.asarray(np.mod(angles + np.pi, 2 * np.pi) - np.pi)


def _equations(
    phases: Array, own_phases: Array, hidden_directions: Array, pairs: Array, spare: int
) -> Array:
    """The matrix A (D, columns), once the shapes fit together."""
    columns, width = hidden_directions.shape
    if phases.shape != own_phases.shape or phases.dtype != own_phases.dtype:
        raise InputError.of(
            "own_phases",
            f"{phases.dtype} of shape {phases.shape}, as the phases",
            f"{own_phases.dtype} of shape {own_phases.shape}",
        )
    if phases.shape[1] != width:
        raise InputError.of("hidden_directions", f"(columns, {phases.shape[1]})", (columns, width))
    if width < columns + spare:
        raise InputError.of("phases", f"at least {columns + spare} directions wide", width)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError.of("pairs", "row numbers of shape (pairs, 2)", pairs.shape)
    return np.ascontiguousarray(hidden_directions.T)
