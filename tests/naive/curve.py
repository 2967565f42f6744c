"""Curve25519 in Python's own integers: the ladder of RFC 7748, and Elligator 2."""

from __future__ import annotations

P = 2**255 - 19
A = 486662


def times(number: int, u: int) -> int:
    """The u-coordinate of ``number`` times a point with u-coordinate ``u``; 0 is infinity too."""
    x2, z2, x3, z3 = 1, 0, u, 1
    for bit in bin(number)[2:]:
        if bit == "1":
            x2, z2, x3, z3 = x3, z3, x2, z2
        x3, z3 = (x2 * x3 - z2 * z3) ** 2 % P, u * (x2 * z3 - z2 * x3) ** 2 % P
        x2, z2 = (x2 * x2 - z2 * z2) ** 2 % P, 4 * x2 * z2 * (x2 * x2 + A * x2 * z2 + z2 * z2) % P
        if bit == "1":
            x2, z2, x3, z3 = x3, z3, x2, z2
    return x2 * pow(z2, P - 2, P) % P


def on_the_curve(u: int) -> bool:
    """Return True if u³ + Au² + u is a square, so that a point with this coordinate exists."""
    return pow(u * u * u + A * u * u + u, (P - 1) // 2, P) in (0, 1)


def elligator2(number: int) -> int:
    """The u-coordinate of a point on the curve for any number."""
    u = -A * pow(1 + 2 * number * number, P - 2, P) % P
    return u if on_the_curve(u) else (-u - A) % P
