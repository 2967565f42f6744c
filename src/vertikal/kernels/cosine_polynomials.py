"""Polynomials for cosines of phases, which compiled loops evaluate instead of calling `cos`.

Both are fitted on |v| ≤ 1/2 at Chebyshev nodes: error below 4e-9 in double precision, so that
single precision is what limits them.
"""

from __future__ import annotations

import numpy as np

_NODES = 0.5 * np.cos((np.arange(64) + 0.5) * np.pi / 64)

ODD = np.linalg.lstsq(
    _NODES[:, None] ** np.arange(1, 10, 2)[None, :], np.sin(np.pi * _NODES), rcond=None
)[0]
"""sin(πv) = v·(S0 + S1·v² + … + S4·v⁸)."""

EVEN = np.linalg.lstsq(
    _NODES[:, None] ** np.arange(0, 11, 2)[None, :], np.cos(np.pi * _NODES), rcond=None
)[0]
"""cos(πv) = C0 + C1·v² + … + C5·v¹⁰."""
