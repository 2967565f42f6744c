"""Shift-invariant kernels through their spectral measures (FDSKL eq. (2), Rudin's theorem).

Each kernel says how a party turns uniform numbers into *its own coordinates* of the directions ω.
The Gaussian and the Cauchy measure are products over coordinates, so the parties' draws are
independent and nobody needs another's. The Matérn measure is a Gaussian over one chi-square number
per direction; only that scalar is common to all parties (`shared_scalars`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv, ndtri

from vertikal.errors import InputError

Array = npt.NDArray[Any]

WIDE = 3.0
"""Bandwidth of the linear kernel over the typical distance of rows."""


@dataclass(frozen=True)
class Kernel(ABC):
    """A kernel of unit bandwidth; a bandwidth σ divides the columns, or equally the directions."""

    name: ClassVar[str]
    shares_scalars: ClassVar[bool] = False
    squares_distances: ClassVar[bool] = True
    """True if its distance is the squared Euclidean one, False if it sums absolute differences."""
    odd: ClassVar[bool] = False
    """True if features are sines of angles without an offset, which change their sign with x."""

    @abstractmethod
    def directions(self, uniforms: Array, scalars: Array | None) -> Array:
        """ω from uniforms in (0, 1), (columns, D), and the parties' shared ``scalars`` (D,)."""

    def shared_scalars(self, uniforms: Array) -> Array | None:
        """Numbers (D,) that all parties must share, from uniforms (D,); None if there are none."""
        return None

    @abstractmethod
    def distances(self, differences: Array) -> Array:
        """This party's share of the distance of pairs, from differences (pairs, columns).

        Shares of several parties add up; `typical_bandwidth` turns a total into a bandwidth.
        """

    @abstractmethod
    def typical_bandwidth(self, distance: float) -> float:
        """The bandwidth at which pairs at this total distance are neither near nor far."""


@dataclass(frozen=True)
class GaussianKernel(Kernel):
    """K(x, x') = exp(−‖x − x'‖² / 2σ²); its spectral measure is Gaussian."""

    name = "gaussian"

    def directions(self, uniforms: Array, scalars: Array | None = None) -> Array:
        return np.asarray(ndtri(uniforms))

    def distances(self, differences: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", differences, differences))

    def typical_bandwidth(self, distance: float) -> float:
        # As the published DSG code: exp(−‖x − x'‖²/d²) for a typical d², that is σ² = d²/2.
        return float(np.sqrt(distance / 2))


@dataclass(frozen=True)
class Laplace(Kernel):
    """K(x, x') = exp(−‖x − x'‖₁ / σ); its spectral measure is a product of Cauchy measures."""

    name = "laplace"
    squares_distances = False

    def directions(self, uniforms: Array, scalars: Array | None = None) -> Array:
        return np.tan(np.pi * (uniforms - 0.5))

    def distances(self, differences: Array) -> Array:
        return np.asarray(np.abs(differences).sum(axis=1))

    def typical_bandwidth(self, distance: float) -> float:
        return float(distance)


@dataclass(frozen=True)
class Matern(GaussianKernel):
    """The Matérn kernel of smoothness ``nu``; its spectral measure is a multivariate t.

    ω = g·√(2ν/u), g Gaussian and private to each party, u ~ χ²(2ν) common to all parties.
    """

    nu: float = 1.5
    name = "matern"
    shares_scalars = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.nu) and self.nu > 0):
            raise InputError.of("kernel: nu", "a positive number", self.nu)

    def shared_scalars(self, uniforms: Array) -> Array:
        chi_square = 2 * gammaincinv(self.nu, uniforms)
        return np.asarray(np.sqrt(2 * self.nu / chi_square))

    def directions(self, uniforms: Array, scalars: Array | None = None) -> Array:
        if scalars is None:
            raise InputError.of("scalars", "the shared numbers of the directions", None)
        return super().directions(uniforms) * scalars


@dataclass(frozen=True)
class Linear(GaussianKernel):
    """K(x, x') = exp(−‖x − x'‖²/2σ²) − exp(−‖x + x'‖²/2σ²), nearly 2·x·x'/σ² if σ is wide.

    Columns have mean zero. Features are √2·sin(ωᵀx) of small angles, which are nearly √2·ωᵀx:
    functions of them are nearly straight, and as sines are odd, they have no products of two
    columns at all.
    """

    name = "linear"
    odd = True

    def typical_bandwidth(self, distance: float) -> float:
        # Angles deviate by a third of a radian, and a row three deviations out bends by a sixth.
        return WIDE * super().typical_bandwidth(distance)


KERNELS: Mapping[str, Kernel] = {
    "gaussian": GaussianKernel(),
    "laplace": Laplace(),
    "matern": Matern(),
    "matern12": Matern(0.5),
    "matern32": Matern(1.5),
    "matern52": Matern(2.5),
    "linear": Linear(),
}
"""The kernels by name; ``matern`` is Matérn 3/2."""


def kernel_named(name: object) -> Kernel:
    """The kernel of this name."""
    if isinstance(name, str) and name in KERNELS:
        return KERNELS[name]
    raise InputError.of("kernel", f"one of {list(KERNELS)}", name)
