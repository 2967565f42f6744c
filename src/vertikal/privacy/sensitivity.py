"""Sensitivity of a release of ADMM sharing: the farthest that one record can move it.

The x-step of a round is least squares on public targets t, over a ball:

    x = argmin over ‖x‖ ≤ b of  λR(x) + (c/2) Σ_j (d_jᵀx − t_j)²,   released: D·x + noise,

for t depends on earlier releases only. **If every row has ‖d_j‖ ≤ 1 and |t_j| ≤ b, replacing one
row moves D·x by at most 2b**, whatever R (convex), λ, c and the number of rows. Proof: add the two
optimality conditions of the problems with d_i and with d'_i; R and the ball drop out by
monotonicity and ‖D₋ᵢ(x − x')‖² ≤ (u − t)(v − u) + (u' − t)(w − u') is left, where u = d_iᵀx,
u' = d'_iᵀx', v = d_iᵀx', w = d'_iᵀx all lie in [−b, b]. Add (u − u')² for the row itself; the sum
is −2uu' + (u + u')t + (u − t)v + (u' − t)w, affine in each of u, u', v, w and t, so largest at a
corner, and no corner of [−b, b]⁵ exceeds 4b². It is attained (nearly) when many rows hold x = b·e
in place and d_i = e becomes −e.

With weights, Σ_j w_j(d_jᵀx − t_j)², the same steps have w_j before each row's terms and give
‖√W(D·x − D'·x')‖² ≤ 4b²·w_i. So √(W/max w)·D·x is what moves by at most 2b. Weights are public.
"""

from __future__ import annotations


def row_sensitivity(bound: float) -> float:
    """2b: the l2 sensitivity of D·x to replacing one row."""
    return 2 * bound


def lemma1_sensitivity(
    columns: int, rho: float, penalty: float, parties: int, bound: float, smoothness: float = 1.0
) -> float:
    """ADMM Lemma 1: ℂ = 3/(d_m ρ)·[λc₁ + (1 + Mρ)b₁], as published.

    It is not a bound: Definition 2 is exceeded by data sets that meet all its assumptions (the test
    named in the paper map has one). It is here to reproduce the paper's noise levels.
    """
    return 3 / (columns * rho) * (penalty * smoothness + (1 + parties * rho) * bound)
