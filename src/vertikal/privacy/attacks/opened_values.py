"""An attack on the values opened under ``disclosure="values"``: separation of a few mixtures.

A label party then holds no phase, only Φd for the directions d that its solver tried: a few dozen
numbers a row, each a sum over all directions of cosines of sums over all parties. The attack is the
one that undoes phases, on these numbers: whiten them, and look for independent components. That a
cosine is no linear mixture, and that there are fewer numbers than columns, is what stands in its
way.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from vertikal.errors import InputError
from vertikal.privacy.attacks.source_separation import Separated

Array = npt.NDArray[Any]

_NOISE = 1e-4
"""Deviation along an axis, of passes of deviation 1, that rounding of the fixed point can make."""


def separate_values(
    values: Array,
    own_columns: Array | None = None,
    *,
    random_state: int = 0,
    max_iterations: int = 200,
) -> Separated:
    """Hidden columns from opened values (rows, passes).

    ``own_columns`` (rows, columns), what the attacker itself holds, are regressed out first: what
    they explain is nothing new to it.
    """
    if values.ndim != 2 or len(values) <= values.shape[1]:
        raise InputError.of("values", "two-dimensional, with more rows than passes", values.shape)
    centred = values - values.mean(axis=0)
    # Passes differ in size by orders of magnitude; each may be as telling as another.
    spread = centred.std(axis=0)
    centred = centred[:, spread > 0] / spread[spread > 0]
    if own_columns is not None:
        own = own_columns - own_columns.mean(axis=0)
        centred = centred - own @ np.linalg.lstsq(own, centred, rcond=None)[0]
    axes, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    rank = int((sizes > _NOISE * np.sqrt(len(values))).sum())
    spectrum = np.square(sizes) / len(values)
    if rank == 0:
        empty = np.empty((len(values), 0))
        return Separated(empty, empty, spectrum, True)
    scores = axes[:, :rank] * np.sqrt(len(values))
    ica = FastICA(whiten=False, max_iter=max_iterations, random_state=random_state)
    with warnings.catch_warnings():
        # Said by `converged` instead: components that have not settled can still match.
        warnings.simplefilter("ignore", ConvergenceWarning)
        components = ica.fit_transform(scores)
    return Separated(components, scores, spectrum, bool(ica.n_iter_ < max_iterations))
