"""Loads the kernels for passes over phases, where Triton is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Protocol


class FusedPasses(Protocol):
    """Products of the cosines of phases with one vector, which read each phase once.

    ``elements`` (rows, D) are signed integers of ``bits`` bits. With ``pair`` the features are the
    cosines of all D, and then their sines.
    """

    def forward(self, elements: Any, coefficients: Any, bits: int, pair: bool) -> Any:
        """Σ_j c_j cos θ_ij, (rows,) in double precision."""

    def adjoint(self, elements: Any, residuals: Any, bits: int, pair: bool) -> Any:
        """Σ_i r_i cos θ_ij, (features,) in double precision."""


def load_passes() -> FusedPasses | None:
    """Return the kernels; None where there is no Triton."""
    if find_spec("triton") is None:
        return None
    from vertikal.compute.device import triton_passes

    return triton_passes


class RingPasses(Protocol):
    """Products of a matrix of signed integers, which wrap, with several vectors (size, k)."""

    def ring_forward(self, matrix: Any, vectors: Any) -> Any:
        """matrix @ vectors."""

    def ring_adjoint(self, matrix: Any, vectors: Any) -> Any:
        """matrix.T @ vectors."""


def load_ring_passes() -> RingPasses | None:
    """Return the kernels; None where there is no Triton."""
    if find_spec("triton") is None:
        return None
    from vertikal.compute.device import triton_ring

    return triton_ring
