"""Check of ADMM Assumption 1: conditions on ρ and the columns under which ADMM converges."""

from __future__ import annotations

import math

import numpy as np

from vertikal.algorithms.admm.settings import AdmmSettings
from vertikal.errors import InputError
from vertikal.losses.nonconvex import NOT_CONVEX, smooth_loss_named
from vertikal.solvers.design import Design

_WIDEST = 1000
_RANK = 1e-10
_MARGIN = 1.01
_AVERAGED = 0.15


def rho_of(settings: AdmmSettings) -> float:
    """Return ρ, as given or automatic.

    As published (Jacobi) the least that item 2 (c) of the assumption allows, ρ·γ(ρ) > 2L² and
    ρ ≥ L, where γ(ρ) = ρ for a convex loss and ρ − L for another. The averaged form converges for
    every ρ if the loss is convex; 0.15·L takes few rounds on all sets of
    `benchmarks/papers/admm/rho.py`.
    """
    loss = smooth_loss_named(settings.loss, regression=settings.regression)
    L, convex = loss.curvature_bound, settings.loss not in NOT_CONVEX
    if settings.rho == "auto":
        if convex and settings.averaging:
            return _AVERAGED * L
        return _MARGIN * L * (math.sqrt(2) if convex else 2)
    if not convex and settings.rho <= L:
        raise InputError.of(
            "rho", f"above {L:.4g}, the curvature of this loss, or 'auto'", settings.rho
        )
    return float(settings.rho)


def assumptions(
    design: Design, settings: AdmmSettings, rho: float, penalty: float
) -> dict[str, bool]:
    """Return by name whether each item of ADMM Assumption 1 holds at this party.

    The names are ``full column rank`` (item 1), ``x-step`` (2 (a) and (b)) and ``rho`` (2 (c)).
    Items 3 and 4 hold for all losses and regularisers here. Items that need eigenvalues are left
    out for sparse columns and for more than 1,000 of them.
    """
    loss = smooth_loss_named(settings.loss, regression=settings.regression)
    L = loss.curvature_bound
    gamma = rho if settings.loss not in NOT_CONVEX else rho - L
    held = {"rho": rho * gamma > 2 * L**2 and rho >= L}
    if design.is_sparse or design.width > _WIDEST:
        return held
    spectrum = np.linalg.eigvalsh(design.gram())
    smallest, largest = float(max(spectrum[0], 0.0)), float(spectrum[-1])
    ridge = penalty if settings.l1_ratio == 0 else 0.0
    modulus = settings.proximity * rho * smallest + ridge
    return held | {
        "full column rank": smallest > _RANK * largest,
        "x-step": modulus >= 2 * largest,
    }
