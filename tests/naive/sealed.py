"""Sealed fits as arithmetic on Python integers and floats, one number at a time."""

from __future__ import annotations

from collections.abc import Sequence

WORD = 2**64


def shared_product(
    C: list[list[int]],
    masks: tuple[list[list[int]], list[list[int]]],
    v: tuple[list[int], list[int]],
    x: tuple[list[int], list[int]],
    z: list[int],
) -> tuple[list[int], list[int]]:
    """A's and H's shares of C v from the formulas, with A's share z of the product with masks."""
    rows, width = range(len(C)), range(len(C[0]))
    y_a, y_h = masks
    result_a, result_h = [], []
    for i in rows:
        a = h = 0
        for j in width:
            common = C[i][j] - y_a[i][j] - y_h[i][j]
            opened = v[0][j] + v[1][j] - x[0][j] - x[1][j]
            a += (common + y_a[i][j]) * opened + common * x[0][j]
            h += y_h[i][j] * opened + common * x[1][j]
            h += (y_a[i][j] + y_h[i][j]) * (x[0][j] + x[1][j])
        result_a.append((a + z[i]) % WORD)
        result_h.append((h - z[i]) % WORD)
    return result_a, result_h


def signed(word: int) -> int:
    return word - WORD if word >= WORD // 2 else word


def revealed(own: int, sent: int, bits: int) -> int:
    """Open A's own share with the lowest bits that H sent: a signed number."""
    total = (own + sent) % 2**bits
    return total - 2**bits if total >= 2 ** (bits - 1) else total


def with_momentum(
    features: Sequence[Sequence[float]],
    slopes,
    penalty: float,
    step_size: float,
    iterations: int,
) -> list[float]:
    """w after the fit's steps from zero; ``slopes(f)`` are the derivatives of the mean loss."""
    width = len(features[0])
    w = before = [0.0] * width
    for k in range(iterations):
        f = [sum(a * b for a, b in zip(row, w, strict=True)) for row in features]
        g = slopes(f)
        gradient = [
            sum(row[j] * s for row, s in zip(features, g, strict=True)) + penalty * w[j]
            for j in range(width)
        ]
        momentum = k / (k + 2)
        following = [
            w[j] + momentum * (w[j] - before[j]) - (1 + momentum) * step_size * gradient[j]
            for j in range(width)
        ]
        w, before = following, w
    return w


def pairwise_slopes(f: Sequence[float], y: Sequence[float]) -> list[float]:
    """Derivatives of the mean of (1 − f_i + f_j)² over all positive i and negative j."""
    positive = [i for i, label in enumerate(y) if label > 0]
    negative = [j for j, label in enumerate(y) if label <= 0]
    slopes = [0.0] * len(f)
    for i in positive:
        for j in negative:
            short = 1 - f[i] + f[j]
            slopes[i] -= 2 * short / (len(positive) * len(negative))
            slopes[j] += 2 * short / (len(positive) * len(negative))
    return slopes
