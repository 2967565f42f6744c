"""Blind source separation: an attack on phases by somebody who does not know the directions.

The phases of a row, about each direction's mean, are an unknown linear mixture ωᵀx of the hidden
columns. People's columns are neither Gaussian nor mere mixtures of each other, and this alone lets
independent component analysis undo the mixture, up to the order, sign and scale of the columns:
private directions are an unknown rotation, not a cipher.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from vertikal.errors import InputError
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]

_CELLS = 1 << 22
_REWRAPS = 8
_CLIFF = 1.5
_SHEER = 5.0


@dataclass(frozen=True)
class Separated:
    """Estimated columns, each of unit variance, in no order and with either sign."""

    components: Array  # (rows, rank)
    scores: Array  # (rows, rank) along the principal axes, each of unit variance
    spectrum: Array  # (D,) variances along the principal axes, in ring steps², largest first
    converged: bool


def separate(
    phases: Array,
    own_phases: Array,
    ring: Ring,
    *,
    hidden_parties: int = 1,
    rank: int | None = None,
    most: int | None = None,
    random_state: int = 0,
    max_iterations: int = 200,
) -> Separated:
    """Hidden columns from phases (rows, D), of which ``own_phases`` (rows, D) are the attacker's.

    ``rank`` is the number of components; by default it is read off the spectrum, and is 0 (no
    components) where the spectrum shows no structure at all. ``most`` bounds it, for an attacker
    who knows how many columns there are.
    """
    if phases.shape != own_phases.shape:
        raise InputError.of("own_phases", f"of shape {phases.shape}", own_phases.shape)
    if rank is not None and not 0 < rank <= min(phases.shape):
        raise InputError.of("rank", f"from 1 to {min(phases.shape)}, or None", rank)
    angles = centred_angles(phases - own_phases, ring)
    mean, spectrum, axes = _rewrapped(angles, ring)
    if rank is None:
        rank = min(_rank(spectrum, hidden_parties), most or len(spectrum))
    if rank == 0:
        empty = np.empty((len(phases), 0))
        return Separated(empty, empty, spectrum, True)
    scores = np.empty((len(phases), rank))
    for rows in _blocks(angles):
        scores[rows] = (angles[rows] - mean) @ axes[:, :rank]
    # Scores along principal axes are uncorrelated; of unit variance they are white already.
    scores /= np.sqrt(np.maximum(spectrum[:rank], 1e-12 * spectrum[0]))
    ica = FastICA(
        algorithm="parallel",
        fun="logcosh",
        whiten=False,
        max_iter=max_iterations,
        random_state=random_state,
    )
    with warnings.catch_warnings():
        # `converged` says it instead: components that have not settled can still match.
        warnings.simplefilter("ignore", ConvergenceWarning)
        components = ica.fit_transform(scores)
    return Separated(components, scores, spectrum, bool(ica.n_iter_ < max_iterations))


def centred_angles(hidden: Array, ring: Ring) -> Array:
    """Each direction's phases about its circular mean: (rows, D) signed ring steps, as floats."""
    total = np.zeros(hidden.shape[1], complex)
    for rows in _blocks(hidden):
        angles = ring.decode_angles(hidden[rows])
        total += np.cos(angles).sum(axis=0) + 1j * np.sin(angles).sum(axis=0)
    centre = ring.encode_angles(np.angle(total))  # (D,)
    signed = np.dtype(f"int{ring.bits}")
    # A byte has room to spare in single precision; wider rings do not.
    precision = np.float32 if ring.bits == 8 else np.float64
    return np.asarray((hidden - centre).view(signed).astype(precision))


def _rewrapped(angles: Array, ring: Ring) -> tuple[Array, Array, Array]:
    """Mean (D,), spectrum (D,) and axes (D, D) after undoing wraps in ``angles``, in place.

    A wrapped angle lies a whole turn from where the leading axes, which all directions share, put
    it.
    """
    turn = 2.0**ring.bits
    mean, spectrum, axes = _principal_axes(angles)
    for _ in range(_REWRAPS):
        leading = axes[:, : _leading(spectrum)]
        moved = 0
        for rows in _blocks(angles):
            about = angles[rows] - mean
            predicted = (about @ leading) @ leading.T
            turns = np.rint((predicted - about) / turn)
            moved += int(np.count_nonzero(turns))
            angles[rows] += turns * turn
        if not moved:
            break
        mean, spectrum, axes = _principal_axes(angles)
    return mean, spectrum, axes


def _principal_axes(angles: Array) -> tuple[Array, Array, Array]:
    mean = angles.mean(axis=0, dtype=np.float64).astype(angles.dtype)
    covariance = np.zeros((angles.shape[1], angles.shape[1]))
    for rows in _blocks(angles):
        about = angles[rows] - mean
        covariance += about.T @ about
    values, axes = np.linalg.eigh(covariance / len(angles))
    return mean, values[::-1], np.ascontiguousarray(axes[:, ::-1], angles.dtype)


def _rank(spectrum: Array, hidden_parties: int) -> int:
    """Number of axes that stand out of the quantisation noise, or of whatever else fills all axes.

    Rounding adds a variance of 1/12 per party and direction: what all axes beyond the rank hold
    together is at most that. It is not white (equal records round equally), so up to half of it may
    lie along the signal's own axes; between these two bounds the steepest drop decides.
    """
    remaining = np.cumsum(spectrum[::-1])[::-1]
    noise = max(len(spectrum) * hidden_parties / 12, 1e-9 * float(remaining[0]))
    least, most = int((remaining > noise).sum()), int((remaining > noise / 2).sum())
    if not 0 < least <= len(spectrum) // 2:
        return _cliff(spectrum)
    return least + int(np.argmax(_drops(spectrum)[least - 1 : most]))


def _cliff(spectrum: Array) -> int:
    """Axes before the steepest drop in the first half of the spectrum; 0 where there is none."""
    drops = _drops(spectrum)[: len(spectrum) // 2]
    steepest = int(np.argmax(drops))
    return steepest + 1 if drops[steepest] > _CLIFF else 0


def _leading(spectrum: Array) -> int:
    """Axes to judge wraps by, up to the first sheer drop: wraps that are alike make axes too."""
    sheer = np.flatnonzero(_drops(spectrum)[: len(spectrum) // 2] > _SHEER)
    return int(sheer[0]) + 1 if len(sheer) else _cliff(spectrum)


def _drops(spectrum: Array) -> Array:
    """Each variance divided by the next one: (D − 1,)."""
    return np.asarray(spectrum[:-1] / np.maximum(spectrum[1:], 1e-12 * spectrum[0]))


def _blocks(array: Array) -> Iterator[slice]:
    height = max(1, _CELLS // max(1, array.shape[1]))
    return (slice(i, i + height) for i in range(0, len(array), height))
