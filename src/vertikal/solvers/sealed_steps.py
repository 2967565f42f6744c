"""Step sizes and fraction bits of a sealed fit: public, and fixed before any data is known.

A sealed fit minimises over w

    F(w) = (1/n) Σ_i ω_i (φ_iᵀw − y_i)² + (λ/2)‖w‖²,    ω_i of mean 1,

or a pairwise square loss with the same penalty, by Nesterov's accelerated gradient steps from zero:

    w_k = v_k − η·∇F(v_k),    v_{k+1} = w_k + β_k (w_k − w_{k−1}),    β_k = (t_k − 1) / t_{k+1}.

Nobody may look at a number on the way, so all of this must be safe for any data:

- **Step.** η = 1/L, L ≥ the largest eigenvalue of the Hessian, which is at most κ times a mean of
  ‖φ_i‖², plus λ (κ = 2 for the square loss). Offsets are uniform, so ‖φ_i‖² =
  1 + (1/D) Σ_j cos 2θ_ij is above 1 + τ with a chance of at most exp(−Dτ²/2) (Hoeffding), and so is
  a mean of such. τ is chosen for 2^−40; ‖φ_i‖² ≤ 2 always. (It is 1 where cosine and sine of every
  phase are features, D of both together; the same τ is taken.)
- **Range.** With z_k = w_{k−1} + t_k (w_k − w_{k−1}) the method keeps (2/L) t_k² (F(w_k) − F(0)) +
  ‖z_k‖² ≤ 0 (Beck and Teboulle's Lemma 4.1, with 0 for the minimiser). Since F(0) ≤ 1,
  ‖z_k‖ ≤ t_k·√(2/L); w_k and v_{k+1} are weighted means of these and of 0, hence no longer. Also
  F(w_k) ≤ 1: the root mean square of the residuals is at most 1 for w_k, and ‖w_k‖ ≤ √(2/λ); v_k
  lies on the line through two such points, at most three times as far out.

In terms of u = √(2/D)·w and cosines C, f = C u, and a step is u ← u − η·((4/nD)·Cᵀr + λu), where
the residuals r are half the slopes of n times the loss: ω_i (f_i − y_i).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vertikal.errors import InputError

COEFFICIENT_BITS = 28
VALUE_BITS = 20
FACTOR_BITS = 16
MOMENTUM_BITS = 16
STEP_BITS = 4
FEWEST_RESIDUAL_BITS = 8
MOST_ITERATIONS = 100_000
ROOM = 61
"""Bits of magnitude that any number may have: one less than truncation can take."""

_CHANCE = 40 * math.log(2)


@dataclass(frozen=True)
class SealedSteps:
    """The steps that label party, helper and dealer take in step, as whole numbers."""

    iterations: int
    residual_bits: int
    """Fraction bits of residuals."""
    step: int
    step_shift: int
    """u changes by (Cᵀr + ridge·u)·step / 2^step_shift, in units of the fraction bits at hand."""
    ridge: int
    momenta: tuple[int, ...]
    """β_k with `MOMENTUM_BITS` fraction bits."""
    step_size: float
    """η."""
    most_value: float
    """Bound on |f| of a row, and on what a weight may be multiplied by."""


def sealed_steps(
    rows: int, width: int, penalty: float, iterations: int, curvature: float, matrix_bits: int
) -> SealedSteps:
    """Steps for n rows, D features, λ, a number of iterations, and κ."""
    if iterations > MOST_ITERATIONS:
        raise InputError.of(
            "max_iter", f"at most {MOST_ITERATIONS} with disclosure='sealed'", iterations
        )
    largest = 1 + min(1.0, math.sqrt(2 * _CHANCE / width))  # of ‖φ‖²
    lipschitz = curvature * largest + penalty
    times = [1.0]
    for _ in range(iterations):
        times.append((1 + math.sqrt(1 + 4 * times[-1] ** 2)) / 2)
    longest = min(times[-1] * math.sqrt(2 / lipschitz), 3 * math.sqrt(2 / penalty))  # of w and v
    # ‖u‖₁ ≤ √D ‖u‖₂ = √2 ‖w‖₂, and a rounded cosine is at most 1.02.
    most_value = 1.02 * math.sqrt(2) * longest
    # |Cᵀr| ≤ n·√(mean ω (f − y)²) ≤ 3n, and at most κ/2 times that for pairs; the penalty adds
    # (λnD/4)·‖u‖.
    gradient = 3 * rows * curvature / 2
    gradient += penalty * rows * width / 4 * math.sqrt(2 / width) * longest
    residual_bits = min(
        VALUE_BITS, math.floor(ROOM - STEP_BITS - matrix_bits - math.log2(1.02 * gradient))
    )
    value = matrix_bits + COEFFICIENT_BITS + math.log2(most_value)
    if residual_bits < FEWEST_RESIDUAL_BITS or value > ROOM:
        raise InputError(
            f"disclosure='sealed' cannot hold {rows} rows, {iterations} iterations and alpha "
            f"{penalty:g} in 64 bits; use fewer rows or iterations, another alpha, or "
            "disclosure='values'"
        )
    wanted = 4 / (lipschitz * rows * width)  # of Cᵀr
    exponent = math.floor(math.log2(wanted)) - STEP_BITS + 1
    step = math.floor(wanted * 2.0**-exponent)  # the largest of STEP_BITS bits that is safe
    gradient_bits = matrix_bits + residual_bits
    ridge = penalty * rows * width / 4 * 2.0 ** (gradient_bits - COEFFICIENT_BITS)
    return SealedSteps(
        iterations,
        residual_bits,
        step,
        gradient_bits - exponent - COEFFICIENT_BITS,
        round(ridge),
        tuple(
            math.floor((times[k] - 1) / times[k + 1] * 2**MOMENTUM_BITS) for k in range(iterations)
        ),
        step * 2.0**exponent * rows * width / 4,
        most_value,
    )
