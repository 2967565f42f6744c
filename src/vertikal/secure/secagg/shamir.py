"""Shamir's secret sharing: any ``threshold`` shares give a secret back, fewer say nothing about it.

The secret is the constant of a random polynomial of degree threshold − 1 over the integers mod
2^255 − 19, and a share its value at the holder's number. Secrets are 31 bytes, so that each is an
element of the field.

With threshold 2, in the integers mod 7, secret 5 and the polynomial 5 + 3x:

    holder 1 gets 1, holder 2 gets 4;   5 = 1·2/(2 − 1) + 4·1/(1 − 2) = 2 − 4 = −2 (mod 7)
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from operator import mul

from vertikal.errors import InputError, SecrecyError

PRIME = 2**255 - 19
SECRET_BYTES = 31
SHARE_BYTES = 32

# Bits drawn beyond the field's own before the reduction: the bias is below 2^-128.
_DRAWN = 48


def split(secret: bytes, holders: Iterable[int], threshold: int) -> dict[int, int]:
    """Split a secret into one share for each holder's number."""
    numbers = list(holders)
    if len(secret) != SECRET_BYTES:
        raise InputError.of("secret", f"{SECRET_BYTES} bytes", f"{len(secret)} bytes")
    if len(set(numbers)) != len(numbers) or not all(0 < x < PRIME for x in numbers):
        raise InputError.of("holders", "different positive numbers", numbers)
    if not 1 <= threshold <= len(numbers):
        raise InputError.of("threshold", f"from 1 to {len(numbers)} holders", threshold)
    coefficients = [int.from_bytes(os.urandom(_DRAWN), "big") % PRIME for _ in range(threshold - 1)]
    coefficients.append(int.from_bytes(secret, "big"))  # highest degree first, the secret last
    return {x: _evaluate(coefficients, x) for x in numbers}


def join(shares: Mapping[int, int], threshold: int) -> bytes:
    """Find the secret of at least ``threshold`` shares; the first ``threshold`` are used.

    Shares that give no 31-byte secret are refused. Other wrong shares give another secret: compare
    it with a digest of the true one.
    """
    if len(shares) < threshold:
        raise SecrecyError(
            f"shares: at least {threshold} are needed, got {len(shares)}; the secret stays closed"
        )
    used = dict(list(shares.items())[:threshold])
    for x, y in used.items():
        if not (0 < x < PRIME and 0 <= y < PRIME):
            raise SecrecyError(f"shares: the share of holder {x} is not an element of the field")
    value = sum(y * weight for y, weight in zip(used.values(), weights(list(used)), strict=True))
    value %= PRIME
    if value.bit_length() > 8 * SECRET_BYTES:
        raise SecrecyError("shares: they do not fit together; one of them is wrong")
    return value.to_bytes(SECRET_BYTES, "big")


def weights(numbers: list[int]) -> list[int]:
    """Lagrange's weights at zero: Π_{j≠i} x_j / (x_j − x_i) mod p.

    Holders' numbers are small, so that products of them are taken as they are, and reduced once.
    All are divided by one inverse: that of Π_i d_i, from which each 1 / d_i follows.
    """
    whole = math.prod(numbers) % PRIME
    # x_i belongs to the denominator: Π_{j≠i} x_j = Π_j x_j / x_i.
    bottoms = [
        x * math.prod([other - x for other in numbers if other != x]) % PRIME for x in numbers
    ]
    before = [1]  # products of the bottoms before each
    for bottom in bottoms:
        before.append(before[-1] * bottom % PRIME)
    inverse = whole * pow(before.pop(), -1, PRIME) % PRIME
    found = []
    for bottom in reversed(bottoms):
        found.append(inverse * before.pop() % PRIME)
        inverse = inverse * bottom % PRIME
    return found[::-1]


_STEPS = 16


def _evaluate(coefficients: list[int], x: int) -> int:
    """Horner's rule, highest degree first, in steps of 16: x is small, and so are its powers."""
    powers = [1]
    for _ in range(_STEPS):
        powers.append(powers[-1] * x)
    step = powers.pop()
    powers.reverse()
    first = len(coefficients) % _STEPS
    value: int = sum(map(mul, coefficients[:first], powers[_STEPS - first :]))
    for start in range(first, len(coefficients), _STEPS):
        value = (value * step + sum(map(mul, coefficients[start : start + _STEPS], powers))) % PRIME
    return value % PRIME
