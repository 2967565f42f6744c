"""Hidden phases as arithmetic on Python integers: every role in one place, one number at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

Matrix = list[list[int]]


def table(bits: int, phase_bits: int, function=math.cos) -> list[int]:
    """Cosines of all phases in fixed point, rounded half to even."""
    turn = 2**phase_bits
    return [round(function(2 * math.pi * i / turn) * 2**bits) for i in range(turn)]


def shares(
    own: Matrix, helpers: Matrix, senders: Sequence[Matrix], masks: Sequence[Matrix], bits: int
) -> tuple[Matrix, Matrix]:
    """(a, h): a = p_A + Σ r_ℓ, h = p_H + Σ (p_ℓ − r_ℓ) mod 2^bits."""
    modulus = 2**bits
    cells = [(i, j) for i in range(len(own)) for j in range(len(own[0]))]
    a, h = [list(row) for row in own], [list(row) for row in helpers]
    for phases, mask in zip(senders, masks, strict=True):
        for i, j in cells:
            a[i][j] = (a[i][j] + mask[i][j]) % modulus
            h[i][j] = (h[i][j] + phases[i][j] - mask[i][j]) % modulus
    return a, h


def cosine(theta: int, rho: int, phase_bits: int, table_bits: int) -> int:
    """cos θ in fixed point as the protocol gives it: cos m·cos ρ + sin m·sin ρ, m = θ + ρ."""
    cos, sin = table(table_bits, phase_bits), table(table_bits, phase_bits, math.sin)
    m = (theta + rho) % 2**phase_bits
    return cos[m] * cos[rho] + sin[m] * sin[rho]


def sine(theta: int, rho: int, phase_bits: int, table_bits: int) -> int:
    """sin θ by the same numbers: sin m·cos ρ − cos m·sin ρ."""
    cos, sin = table(table_bits, phase_bits), table(table_bits, phase_bits, math.sin)
    m = (theta + rho) % 2**phase_bits
    return sin[m] * cos[rho] - cos[m] * sin[rho]


def rounded_share(share: int) -> int:
    """A share mod 2^40 without its last eight bits, rounded half up, mod 2^32."""
    return (share + 128) // 256 % 2**32


def product(matrix: Matrix, vectors: Matrix, bits: int) -> Matrix:
    """matrix @ vectors mod 2^bits."""
    return [
        [
            sum(row[j] * vectors[j][o] for j in range(len(row))) % 2**bits
            for o in range(len(vectors[0]))
        ]
        for row in matrix
    ]


def transpose(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix, strict=True)]


def private_product(
    own: Matrix,
    helpers: Matrix,
    mask: Matrix,
    v: Matrix,
    x: Matrix,
    u: Matrix,
    noise: Matrix,
    bits: int,
) -> tuple[Matrix, dict[str, Matrix]]:
    """(K + M) v, and noise, by the messages of the protocol, and these messages by name."""
    modulus = 2**bits

    def combined(first: Matrix, second: Matrix, sign: int) -> Matrix:
        return [
            [(a + sign * b) % modulus for a, b in zip(one, two, strict=True)]
            for one, two in zip(first, second, strict=True)
        ]

    difference = combined(helpers, mask, -1)
    masked = combined(v, x, -1)
    dealt = combined(product(mask, x, bits), u, -1)
    answer = combined(combined(product(mask, masked, bits), dealt, 1), noise, 1)
    kept = combined(own, difference, 1)
    result = combined(combined(product(kept, v, bits), u, 1), answer, 1)
    return result, {
        "difference": difference,
        "masked": masked,
        "dealt": dealt,
        "answer": answer,
    }
