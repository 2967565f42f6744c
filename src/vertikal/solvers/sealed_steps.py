"""Step sizes and fraction bits of a sealed fit: public, and fixed before any data is known.

A sealed fit minimises over w

    F(w) = (1/n) Σ_i ω_i (φ_iᵀw − y_i)² + (λ/2)‖w‖²,    ω_i of mean 1,

or a pairwise square loss with the same penalty, by steps with momentum from zero:

    w_{k+1} = w_k + β_k (w_k − w_{k−1}) − (1 + β_k)·η·∇F(w_k),    β_k = k / (k + 2).

F is quadratic, so w_k − w* = p_k(x)(w_0 − w*) in each eigenvector of the Hessian, where x = 1 − ηh
for its eigenvalue h, p_0 = 1 and p_{k+1} = (1 + β_k)·x·p_k − β_k·p_{k−1}. With these β_k it is
p_k = U_k / (k + 1), Chebyshev's polynomial of the second kind: F(w_k) − F(w*) shrinks as
L‖w*‖² / (8 (k + 1)²) in directions well below L, the least that k gradients can promise there and a
sixteenth of what Nesterov's steps do. (On a9a, ijcnn1 and cod-rna 70 of these steps come as far as
150 of his.)

Nobody may look at a number on the way, so all of this must be safe for any data:

- **Step.** η = 2/L, L ≥ the largest eigenvalue of the Hessian, so that −1 ≤ x ≤ 1. It is at most κ
  times a mean of ‖φ_i‖², plus λ (κ = 2 for the square loss). Offsets are uniform, so ‖φ_i‖² =
  1 + (1/D) Σ_j cos 2θ_ij is above 1 + τ with a chance of at most exp(−Dτ²/2) (Hoeffding), and so is
  a mean of such. τ is chosen for 2^−40; ‖φ_i‖² ≤ 2 always. (It is 1 where cosine and sine of every
  phase are features, D of both together; the same τ is taken.)
- **Decrease.** |p_k| ≤ 1, for any β_k from 0 to 1 with β_0 = 0, also rounded ones: since
  p_{k+1} − x·p_k = β_k (x·p_k − p_{k−1}), the number p_k² + (x·p_k − p_{k−1})² / (1 − x²) does not
  grow with k, and it is 1 for k = 1. So F(w_k) ≤ F(0) ≤ 1: the root mean square of the residuals is
  at most 1, and ‖w_k‖ ≤ √(2/λ).
- **Range.** A polynomial of degree k that is at most 1 changes by at most k² (1 − x) from x = 1
  (Markov), so that (1 − p_k)² ≤ 2·k²·ηh, and ‖w_k‖ ≤ 2k·√η.

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
STEP_BITS = 5
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
    """η·∇F in terms of u is (Cᵀr + ridge·u)·step / 2^step_shift, in the fraction bits at hand."""
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
    longest = min(2 * iterations * math.sqrt(2 / lipschitz), math.sqrt(2 / penalty))  # of w
    # ‖u‖₁ ≤ √D ‖u‖₂ = √2 ‖w‖₂, and a rounded cosine is at most 1.02.
    most_value = 1.02 * math.sqrt(2) * longest
    # |Cᵀr| ≤ n·√(mean ω (f − y)²) ≤ n, and at most κ/2 times that for pairs; the penalty adds
    # (λnD/4)·‖u‖.
    gradient = rows * curvature / 2
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
    wanted = 8 / (lipschitz * rows * width)  # of Cᵀr
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
        tuple(math.floor(k / (k + 2) * 2**MOMENTUM_BITS) for k in range(iterations)),
        step * 2.0**exponent * rows * width / 4,
        most_value,
    )
