"""The cost of the primal attack on learning with errors, as the standard counts it.

The attack looks for the short vector (e, s·ν, 1) in a lattice of dimension d = m + n + 1 and
determinant q^m·ν^n, by block reduction with blocks of β; ν = σ_e/σ_s balances error and secret. It
succeeds (Alkim, Ducas, Pöppelmann, Schwabe 2016, section 6.3) once

    σ·√β ≤ δ(β)^(2β − d − 1)·(q^m·ν^n)^(1/d),   δ(β) = ((πβ)^(1/β)·β/(2πe))^(1/(2(β − 1))),

for some number m of samples. A call of sieving in dimension β costs 2^(0.292·β + 16.4) operations
(Becker, Ducas, Gama, Laarhoven 2016), and 8d calls are counted, as in the standard.
"""

from __future__ import annotations

import math


def bits_of_security(dimension: int, modulus_bits: float, error: float, secret: float) -> float:
    """log2 of the operations of the cheapest attack; deviations of error and secret are given."""
    log_q, balance = modulus_bits * math.log(2), math.log(error / secret)

    def succeeds(beta: int) -> int | None:
        delta = math.log(math.pi * beta) / beta + math.log(beta / (2 * math.pi * math.e))
        delta /= 2 * (beta - 1)
        for samples in range(dimension // 2, 2 * dimension + 1, 16):
            d = samples + dimension + 1
            volume = (samples * log_q + dimension * balance) / d
            if math.log(error) + math.log(beta) / 2 <= delta * (2 * beta - d - 1) + volume:
                return d
        return None

    low, high = 60, 4000
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if succeeds(middle) else (middle + 1, high)
    d = succeeds(low) or 0
    return 0.292 * low + 16.4 + math.log2(8 * d)
