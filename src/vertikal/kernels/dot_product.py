"""Kernels that are functions of inner products, from the linear kernel alone (SecGram 2.2).

Every function takes ``gram`` (rows, others), the inner products ⟨x, z⟩, and where it needs them the
squared lengths ``left`` (rows,) and ``right`` (others,). Binary rows have their number of ones as
squared length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError

Array = npt.NDArray[Any]


def squared_distances(gram: Array, left: Array, right: Array) -> Array:
    """‖x − z‖² = ⟨x, x⟩ + ⟨z, z⟩ − 2⟨x, z⟩, not below zero."""
    return np.maximum(left[:, None] + right[None, :] - 2.0 * gram, 0.0)


def rbf(gram: Array, left: Array, right: Array, gamma: float) -> Array:
    """exp(−γ‖x − z‖²)."""
    return np.asarray(np.exp(-gamma * squared_distances(gram, left, right)))


def polynomial(gram: Array, degree: int, gamma: float = 1.0, constant: float = 0.0) -> Array:
    """(γ⟨x, z⟩ + c)^d."""
    return np.asarray((gamma * gram + constant) ** degree)


def dot_product_polynomial(gram: Array, coefficients: Sequence[float]) -> Array:
    """Σ_d a_d ⟨x, z⟩^d, coefficients from degree 0 on; a kernel where none is negative."""
    if not len(coefficients) or not all(np.isfinite(a) and a >= 0 for a in coefficients):
        raise InputError.of(
            "coefficients", "one or more finite numbers, none negative", list(coefficients)
        )
    gram = np.asarray(gram, np.float64)
    value = np.zeros_like(gram)
    for a in reversed(coefficients):
        value *= gram
        value += a
    return value


def conjunctive(gram: Array, degree: int) -> Array:
    """Of binary rows: conjunctions of ``degree`` variables true in both, C(⟨x, z⟩, d)."""
    from scipy.special import binom  # a device that recommends needs no SciPy

    return np.asarray(binom(check_counts("conjunctive", gram), degree))


def disjunctive(gram: Array, left: Array, right: Array, variables: int, degree: int) -> Array:
    """Of binary rows: disjunctions of ``degree`` of all ``variables`` that are true in both.

    All, less those false in x, less those false in z, plus those false in both, which were taken
    off twice: C(n, d) − C(n − |x|, d) − C(n − |z|, d) + C(n − |x| − |z| + ⟨x, z⟩, d).
    """
    from scipy.special import binom

    gram = check_counts("disjunctive", gram)
    without_x, without_z = variables - left[:, None], variables - right[None, :]
    neither = variables - left[:, None] - right[None, :] + gram
    return np.asarray(
        binom(variables, degree)
        - binom(without_x, degree)
        - binom(without_z, degree)
        + binom(neither, degree)
    )


def normalised(kernel: Array, left: Array, right: Array) -> Array:
    """k(x, z) / √(k(x, x)·k(z, z)), zero where a row has no length."""
    lengths = np.sqrt(np.outer(left, right))
    zeros = np.zeros(np.shape(kernel))
    return np.asarray(np.divide(kernel, lengths, out=zeros, where=lengths > 0))


def check_counts(name: str, gram: Array) -> Array:
    """Refuse what cannot be inner products of rows of bits."""
    gram = np.asarray(gram, np.float64)
    if gram.size and (gram.min() < 0 or (gram != np.rint(gram)).any()):
        raise InputError.of(
            f"kernel {name!r}", "given counts of bits", "negative or broken numbers"
        )
    return gram
