"""ADMM sharing in one process on plain matrices: (6) to (8), and (16), written out, no trick.

The x-step solves the normal equations of (6) as printed; the z-step minimises (7) number by number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from tests.naive.losses import PLAIN


@dataclass(frozen=True)
class Iterate:
    x: dict[str, np.ndarray]
    z: np.ndarray
    y: np.ndarray


def admm(
    matrices: Mapping[str, np.ndarray],
    penalised: Mapping[str, np.ndarray],
    targets: np.ndarray,
    *,
    loss: str,
    penalty: float,
    rho: float,
    averaging: bool,
    rounds: int,
    noise: Callable[[str, int], np.ndarray] = lambda name, number: np.zeros(1),
) -> Iterator[Iterate]:
    """x, z and y after each round, for R = ‖x‖²/2 over the penalised coordinates.

    ``noise(m, t)`` is ξ_m of round t in (16), which everybody else sees in x̃_m = x_m + ξ_m.
    """
    names, rows = list(matrices), len(targets)
    x = {m: np.zeros(matrices[m].shape[1]) for m in names}
    seen = x  # x̃
    z, y = np.zeros(rows), np.zeros(rows)
    for number in range(rounds):
        parts = {m: matrices[m] @ seen[m] for m in names}
        total = sum(parts.values())
        new = {}
        for m in names:
            D, ridge = matrices[m], penalty * np.diag(penalised[m].astype(float))
            if averaging:
                # Boyd et al. 2011, section 7.3, with ρ_Boyd = Mρ.
                strength = len(names) * rho
                goal = parts[m] - (total - z) / len(names)
            else:
                strength = rho
                goal = z - (total - parts[m])
            new[m] = np.linalg.solve(ridge + strength * D.T @ D, D.T @ (strength * goal - y))
        x = new
        seen = {m: x[m] + noise(m, number) for m in names}
        total = sum(matrices[m] @ seen[m] for m in names)
        z = np.array([best_z(loss, total[i], y[i], targets[i], rho) for i in range(rows)])
        y = y + rho * (total - z)
        yield Iterate(dict(x), z, y)


def best_z(loss: str, total: float, y: float, target: float, rho: float) -> float:
    """argmin over z of L(z) − yz + ρ/2 (total − z)²."""

    def value(z: float) -> float:
        return PLAIN[loss](z, target)[0] - y * z + rho / 2 * (total - z) ** 2

    around = total + y / rho
    width = 2 / rho + 2 * abs(target - around)
    found = minimize_scalar(
        value, bounds=(around - width, around + width), method="bounded", options={"xatol": 1e-12}
    )
    return float(found.x)
