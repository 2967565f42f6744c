"""Landmark features in a ring: Nyström's method where each party holds its own coordinates.

‖x − z‖² = Σ_ℓ ‖x_ℓ − z_ℓ‖² is a sum over the parties, so the receiver learns the kernel
exp(−γ‖x − z_j‖²) of each row with each landmark z_j, and no party its neighbour's coordinates of
either. Each party cuts its part at the distance where the kernel is practically zero. So the sum of
q parts always fits the ring, and no range has to be agreed on.

`decode` gives the columns C of the kernel; `Whitening` turns them into features C·W with
W·Wᵀ = K⁻¹, K the kernel among the landmarks, so that inner products are Nyström's kernel C K⁻¹ Cᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import lapack, solve_triangular

from vertikal.errors import RingError
from vertikal.kernels.feature_map import Array, Block, FeatureMap
from vertikal.ring.integers import Ring

FAR = {16: 9.0, 32: 20.0}
"""γ‖x − z‖² from which on the kernel counts as zero, by bits of the ring.

With 16 bits a kernel of exp(−9) is below what rounding does to the others.
"""

FLOOR = {16: 1e-3, 32: 1e-6}
"""Least remainder of a landmark, by bits of the ring.

The remainder is what the landmarks before it do not explain. Below this it is only rounding.
"""

_TILE = 1 << 18


class LandmarkMap(FeatureMap):
    """Kernel columns of one block of landmarks, as one party sees them.

    ``landmarks`` (width, columns) are this party's coordinates, scaled as its columns are by
    ``centre`` and ``factor``; γ = 1/(2·bandwidth²); ``parties`` is how many summands a ring element
    must hold.
    """

    kept_dtype = np.dtype(np.float32)

    def __init__(
        self,
        ring: Ring,
        landmarks: Array,
        bandwidth: float,
        parties: int,
        *,
        centre: Array | None = None,
        factor: Array | None = None,
    ) -> None:
        self.ring = ring
        self.width = landmarks.shape[0]
        columns = landmarks.shape[1]
        # Steps per unit of γd²: q parts, each at most FAR and rounded up, stay below 2^k.
        self.unit = parties * FAR[ring.bits] / (2.0**ring.bits - 1 - parties)
        self.step = np.sqrt(0.5 / self.unit) / bandwidth
        self.most = np.floor(FAR[ring.bits] / self.unit)
        self.factor = (np.ones(columns) if factor is None else factor) * self.step
        middle = landmarks.mean(axis=0) if self.width else np.zeros(columns)
        self.points = np.ascontiguousarray(((landmarks - middle) * self.step).T)
        self.middle = (np.zeros(columns) if centre is None else centre) * self.factor
        self.middle = self.middle + middle * self.step
        self.lengths = np.square(self.points).sum(axis=0)
        # Single precision tells 2^16 steps apart; wider rings are rounded from double.
        self._float = np.dtype(np.float32 if ring.bits == 16 else np.float64)
        self._table = np.exp(-self.unit * np.arange(2**16), dtype=np.float64)

    def local(self, block: Block, out: Array | None = None) -> Array:
        shape = (block.shape[0], self.width)
        distances = np.empty(shape, self.ring.dtype) if out is None else out
        height = max(16, _TILE // max(1, self.width))
        points = (-2.0 * self.points).astype(self._float)
        lengths = self.lengths.astype(self._float)
        for start in range(0, len(distances), height):
            part = block[start : start + height]
            dense = part.toarray() if sparse.issparse(part) else part
            rows = dense * self.factor - self.middle
            own = np.square(rows).sum(axis=1)
            if not np.isfinite(own).all():
                raise RingError("landmarks: distances must be finite, got NaN or infinity")
            # ‖x − z‖² = ‖x‖² − 2⟨x, z⟩ + ‖z‖², in ring steps.
            steps = rows.astype(self._float) @ points
            steps += lengths
            steps += own.astype(self._float)[:, None]
            np.clip(steps, 0.0, self.most, out=steps)
            np.rint(steps, out=steps)
            distances[start : start + height] = steps
        return distances

    def keep(self, total: Array) -> Array:
        """Kernel values in single precision: what passes over the rows need again and again."""
        return self.decode(total, np.float32)

    def decode(self, total: Array, dtype: npt.DTypeLike = np.float32) -> Array:
        """exp(−γd²) of summed distances; kernel values that were kept pass as they are."""
        if total.dtype.kind == "f":
            return total.astype(dtype, copy=False)
        if self.ring.bits == 16:
            return np.take(self._table.astype(dtype), total)
        steps = total.astype(np.float64)
        steps *= -self.unit
        return np.asarray(np.exp(steps, out=steps).astype(dtype))


@dataclass(frozen=True)
class Whitening:
    """W (landmarks, landmarks) with W·Wᵀ = K⁻¹ on the part of K that can be told from noise.

    Columns beyond the rank are zero. ``gram`` is WᵀK²W/width: what the features' covariance looks
    like on the landmarks themselves (Falkon's preconditioner).
    """

    matrix: Array  # (landmarks, landmarks)
    gram: Array  # (landmarks, landmarks)
    rank: int


def whitening(kernel: Array, share: float = 1.0, floor: float = FLOOR[32]) -> Whitening:
    """From the kernel among the landmarks, by a Cholesky factor with pivots, cut where it must be.

    ``share`` is this block's share in all features; landmarks of which less than ``floor`` is left
    after those before them are left out.
    """
    width = len(kernel)
    even = (kernel + kernel.T) / 2
    np.einsum("ii->i", even)[:] = 1.0
    factor, pivots, rank, _ = lapack.dpstrf(even, tol=floor, lower=1)
    lower = np.tril(factor[:rank, :rank])
    order = np.asarray(pivots[:rank]) - 1
    matrix = np.zeros((width, width))
    matrix[order[:, None], np.arange(rank)] = solve_triangular(
        lower, np.eye(rank), lower=True, check_finite=False
    ).T
    # On the landmarks the features are K·W, of which the pivots' rows are L.
    tall = np.tril(factor[:, :rank])
    gram = np.zeros((width, width))
    gram[:rank, :rank] = tall.T @ tall / width
    return Whitening(matrix * np.sqrt(share), gram * share, int(rank))


def landmark_rows(rows: int, widths: dict[str, int], seed: int) -> dict[str, Any]:
    """Row numbers of each block's landmarks: a public random choice, all rows before any again."""
    generator = np.random.default_rng(seed)
    needed = sum(widths.values())
    rounds = [generator.permutation(rows) for _ in range(-(-needed // rows))]
    chosen = np.concatenate(rounds)[:needed]
    ends = np.cumsum(list(widths.values()))
    return dict(zip(widths, np.split(chosen, ends[:-1]), strict=True))
