"""A party's matrix D_m from its table: scaled columns or its own random features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.algorithms.admm.settings import AdmmSettings, Gaussian
from vertikal.data.scaling import Scaling, learn_scaling
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.kernels.bandwidth import pair_distances, sample_pairs, weighted_median
from vertikal.kernels.mean_distance import checked_mean, mean_distance
from vertikal.kernels.spectral import kernel_named
from vertikal.party.party import Party
from vertikal.secure.keys.prg import derive_key, uniform_reals
from vertikal.solvers.design import Design

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Features:
    """Recipe by which one party turns its columns into D_m; its shard keeps it.

    Directions are drawn from the seed.
    """

    scaling: Scaling
    intercept: bool
    unit_rows: bool
    kernel: str | None = None
    bandwidth: float = 0.0
    directions: int = 0
    seed: bytes = field(default=b"", repr=False)

    def design(
        self, table: Table, weights: Array | None = None, *, training: bool = False
    ) -> Design:
        """Compute D_m of these rows, with their weights in training."""
        block = table.block(slice(0, table.rows))
        centre, factor = self.scaling.arrays()
        if self.kernel is None and not self.unit_rows:
            return Design(
                block, centre=centre, factor=factor, intercept=self.intercept, weights=weights
            )
        # Columns with privacy are used as they are: a scaling would depend on every row.
        values = block if self.kernel is None else self._cosines(block, centre, factor)
        if not self.unit_rows:
            return Design(values, intercept=self.intercept, weights=weights)
        if self.intercept:
            ones = np.ones((table.rows, 1))
            together = sparse.hstack if sparse.issparse(values) else np.hstack
            values = together((values, ones))
        if training:
            check_directions(values, table.party)
        return Design(normalised(values), weights=weights)

    def _cosines(self, block: Any, centre: Array, factor: Array) -> Array:
        """√(2/D)·cos(ωᵀx + b): features of this party's own columns, drawn from its own seed."""
        shape = (len(factor), self.directions)
        uniforms = uniform_reals(derive_key(self.seed, "directions"), shape)
        offsets = 2 * np.pi * uniform_reals(derive_key(self.seed, "offsets"), shape[1:])
        omega = kernel_named(self.kernel).directions(uniforms, None) / self.bandwidth
        omega = omega * factor[:, None]
        angles = np.asarray(block @ omega) - centre @ omega + offsets
        return np.asarray(np.sqrt(2 / self.directions) * np.cos(angles))


def learn_features(party: Party, settings: AdmmSettings, weights: Array | None) -> Features:
    """Choose this party's features; nothing is exchanged, the bandwidth is of its own columns.

    With an intercept each party centres its columns: the model is the same, since the intercept
    takes the difference, and the parties' parts no longer compete for it. Columns with privacy are
    not centred, since a mean depends on every row.
    """
    scaling = learn_scaling(party.table, settings.scale)
    if settings.fit_intercept and settings.kernel is None and settings.privacy is None:
        values = party.table.block(slice(0, party.table.rows))
        share = np.ones(party.table.rows) if weights is None else weights
        centre = np.asarray(values.T @ (share / share.sum())).ravel()
        scaling = Scaling(centre.tolist(), scaling.factor)
    bandwidth = 0.0
    if settings.kernel is not None:
        bandwidth = _own_bandwidth(party.table, settings.kernel, settings.seed, scaling)
    return Features(
        scaling,
        settings.fit_intercept and party.leads,
        settings.privacy is not None,
        None if settings.kernel is None else "gaussian",
        bandwidth,
        0 if settings.kernel is None else settings.kernel.n_components,
        party.secret("admm features"),
    )


def check_directions(values: Any, party: str) -> None:
    """Refuse a row of zeros, which has no direction."""
    lengths = _lengths(values)
    if not lengths.all():
        raise InputError(
            f"columns of party {party!r} must hold a number other than zero in each row, got row "
            f"{int(np.argmin(lengths))} of zeros, which privacy cannot bring to length one; "
            "add a constant column or drop the row"
        )


def normalised(values: Any) -> Any:
    """ADMM Assumption 2, item 3: bring rows to length one; a row of zeros stays as it is."""
    lengths = _lengths(values)
    # A little below one, so that rounding never makes a row longer.
    inverse = 1 / (np.where(lengths > 0, lengths, 1.0) * (1 + 1e-12))
    if sparse.issparse(values):
        return sparse.csr_array(sparse.diags_array(inverse) @ values)
    return np.asarray(values * inverse[:, None])


def _lengths(values: Any) -> Array:
    squares = values.multiply(values) if sparse.issparse(values) else np.square(values)
    return np.asarray(np.sqrt(np.asarray(squares.sum(axis=1)).ravel()))


def _own_bandwidth(table: Table, chosen: Gaussian, seed: int, scaling: Scaling) -> float:
    if not isinstance(chosen.bandwidth, str):
        return chosen.bandwidth
    kernel, factor = kernel_named("gaussian"), scaling.arrays()[1]
    if chosen.bandwidth == "mean":
        mean = mean_distance(kernel, table.block, table.rows, factor)
        return kernel.typical_bandwidth(checked_mean(mean))
    pairs = sample_pairs(table.rows, seed)
    distances = pair_distances(kernel, table.block, factor, pairs)
    return kernel.typical_bandwidth(weighted_median(distances, np.ones(len(pairs))))
