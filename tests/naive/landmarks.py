"""Nyström's method written out: kernel columns from whole rows, and the inverse by eigenvalues."""

from __future__ import annotations

import math

import numpy as np


def kernel(X: np.ndarray, Z: np.ndarray, bandwidth: float) -> np.ndarray:
    """exp(−‖x − z‖²/2σ²), one pair at a time."""
    return np.array(
        [
            [
                math.exp(
                    -math.fsum((a - b) ** 2 for a, b in zip(x, z, strict=True)) / 2 / bandwidth**2
                )
                for z in Z
            ]
            for x in X
        ]
    )


def nystrom(columns: np.ndarray, among: np.ndarray) -> np.ndarray:
    """C K⁺ Cᵀ."""
    return columns @ np.linalg.pinv(among, rcond=1e-10, hermitian=True) @ columns.T
