"""The regularised problem on an explicit feature matrix, by SciPy in double precision."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from tests.naive.losses import PLAIN


def objective(
    a: np.ndarray,
    features: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    loss: str,
    penalty: float,
    constant: float,
) -> tuple[float, np.ndarray]:
    """(1/W) Σ_i w_i L(c + (Φα)_i, y_i) + λ/2 ‖α‖², and its gradient in α, for one output."""
    f = constant + features @ a
    pairs = np.array([PLAIN[loss](u, t) for u, t in zip(f.tolist(), y.tolist(), strict=True)])
    share = weights / weights.sum()
    value = share @ pairs[:, 0] + penalty / 2 * a @ a
    return float(value), features.T @ (share * pairs[:, 1]) + penalty * a


def minimise(
    features: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    loss: str,
    penalty: float,
    constant: np.ndarray,
) -> np.ndarray:
    """α (D, outputs), each output by itself, until nothing more can be gained."""
    columns = []
    for k in range(targets.shape[1]):
        found = minimize(
            objective,
            np.zeros(features.shape[1]),
            (features, targets[:, k], weights, loss, penalty, float(constant[k])),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 5000, "maxfun": 20000, "ftol": 0.0, "gtol": 1e-10, "maxcor": 30},
        )
        columns.append(found.x)
    return np.stack(columns, axis=1)
