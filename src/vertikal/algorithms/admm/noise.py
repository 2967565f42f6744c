"""The noise of the private form of ADMM sharing: its size, its kind and its price."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from vertikal.algorithms.admm.settings import AdmmSettings, Privacy
from vertikal.errors import InputError
from vertikal.party.party import Party
from vertikal.privacy.accountant import (
    Spent,
    corollary1,
    corollary1_round,
    epsilon_of,
    theorem3_deviation,
    tight_deviation,
)
from vertikal.privacy.sensitivity import lemma1_sensitivity, row_sensitivity
from vertikal.ring.integers import Ring
from vertikal.secure import lattice_gaussian
from vertikal.solvers.design import Design

Array = npt.NDArray[Any]

_ROUNDING = 1e-4
"""Share of the sensitivity that rounding may add: half by the lattice, half by the x-step."""
_PUBLISHED_FRACTION = 36
_LIGHTEST = 1e-6


@dataclass(frozen=True)
class Noise:
    """Gaussian noise of one job, of deviation σ in each released number and each round."""

    privacy: Privacy
    rounds: int
    sensitivity: float
    deviation: float
    fraction_bits: int

    @property
    def mu(self) -> float:
        """μ of all rounds together, in the sense of Gaussian DP."""
        return self.sensitivity / self.deviation * math.sqrt(self.rounds)

    def spent(self, rounds: int) -> Spent:
        """Return the price of the first ``rounds`` rounds; infinite where no bound holds."""
        privacy = self.privacy
        composed = math.inf
        one = math.sqrt(2 * math.log(1.25 * 2 * self.rounds / privacy.delta))
        one *= self.sensitivity / self.deviation
        if 0 < one <= 1:
            composed = corollary1(one, 0.0, rounds, privacy.delta / 2)[0]
        if privacy.mechanism == "paper":
            return Spent(rounds, math.inf, composed, privacy.delta)
        mu = self.sensitivity / self.deviation * math.sqrt(rounds)
        return Spent(rounds, epsilon_of(mu, privacy.delta), composed, privacy.delta)


def plan_noise(
    settings: AdmmSettings, rows: int, columns: int, rho: float, penalty: float
) -> Noise:
    """Choose σ by the total (ε, δ) and the number of rounds."""
    privacy = settings.privacy
    if privacy is None:
        raise InputError.of("privacy", "a budget", None)
    rounds = settings.most_rounds
    if privacy.mechanism == "paper":
        sensitivity = lemma1_sensitivity(
            columns, rho, penalty, len(settings.parties), privacy.bound
        )
        epsilon, delta = corollary1_round(privacy.epsilon, privacy.delta, rounds)
        deviation = theorem3_deviation(epsilon, delta, sensitivity)
        return Noise(privacy, rounds, sensitivity, deviation, _PUBLISHED_FRACTION)
    outputs = math.sqrt(settings.outputs)  # one release per class, each of this sensitivity
    sensitivity = row_sensitivity(privacy.bound) * outputs * (1 + _ROUNDING)
    # The sampler differs a little from an ideal one; ε and δ pay for that, number by number.
    numbers = rounds * rows * settings.outputs
    slack = lattice_gaussian.DISTANCE * numbers * (1 + math.exp(min(privacy.epsilon, 700.0)))
    epsilon = privacy.epsilon - 2 * lattice_gaussian.LOG_RATIO * numbers
    if slack > privacy.delta / 2 or epsilon <= 0:
        raise InputError.of(
            "epsilon", "small enough for the noise sampler at this delta", privacy.epsilon
        )
    deviation = tight_deviation(epsilon, privacy.delta - slack, rounds, sensitivity)
    bits = lattice_gaussian.fraction_bits_for(deviation)
    if math.sqrt(rows * settings.outputs) * 2.0**-bits > _ROUNDING / 2 * sensitivity:
        raise InputError.of(
            "epsilon",
            f"larger, or rows fewer than {rows}: the lattice of the noise is too coarse",
            privacy.epsilon,
        )
    return Noise(privacy, rounds, sensitivity, deviation, bits)


class Release:
    """Form in which a contribution D_m·x_m leaves the party: ring elements, with noise if any.

    With noise, the number of a row is sent times √(weight/largest weight): it is this product that
    one row moves by at most 2b (`vertikal.privacy.sensitivity`). Rows that weigh less get more
    noise.
    """

    def __init__(
        self,
        party: Party,
        noise: Noise | None,
        design: Design,
        fraction: int,
        weights: Array | None = None,
    ) -> None:
        self._party, self._noise = party, noise
        self._ring = Ring(64)
        self._scale: Array | None = None
        if noise is not None and weights is not None:
            self._scale = np.sqrt(weights / weights.max())[:, None]
        self._fraction = fraction if noise is None else noise.fraction_bits
        self._root: Array | None = None
        if noise is not None and noise.privacy.mechanism == "paper":
            self._root = _inverse_root(design.gram())
            self._design = design

    def __call__(self, contribution: Array, summands: int) -> tuple[Array, Array]:
        """Return the ring elements to send, and as numbers what everybody may know of them."""
        noise = self._noise
        if noise is not None and self._root is not None:
            contribution = contribution + self._published(noise.deviation, contribution.shape[1])
        if self._scale is not None:
            contribution = contribution * self._scale
        with self._party.naming("contributions"):
            encoded = self._ring.encode_reals(contribution, self._fraction, summands)
        if noise is not None and self._root is None:
            width = noise.deviation * 2.0**self._fraction
            drawn = lattice_gaussian.fresh_noise(width, contribution.shape)
            encoded = encoded + drawn.view(np.uint64)
        return encoded, self.opened(encoded)

    def opened(self, encoded: Array) -> Array:
        """Decode ring elements, or their sum over parties, to numbers."""
        numbers = self._ring.decode_reals(encoded, self._fraction)
        if self._scale is None:
            return numbers
        # Rows of (nearly) no weight count for nothing, and their noise would be out of range.
        return np.divide(
            numbers, self._scale, np.zeros_like(numbers), where=self._scale > _LIGHTEST
        )

    def _published(self, deviation: float, outputs: int) -> Array:
        """Draw D_m·ξ of equation (16), ξ ~ N(0, σ²(D_mᵀD_m)⁻¹), as published.

        D_m·ξ lies in the span of D_m's columns, so its reader can tell data sets with different
        spans apart with certainty: no (ε, δ) follows, whatever σ.
        """
        if self._root is None:
            raise InputError.of("mechanism", "'paper'", "row")
        width = 2.0 ** lattice_gaussian.fraction_bits_for(1.0)
        plain = lattice_gaussian.fresh_noise(width, (self._design.width, outputs)) / width
        return self._design.forward(deviation * (self._root @ plain))


def _inverse_root(gram: Array) -> Array:
    """(DᵀD)^(−1/2) on the span of D's rows."""
    values, vectors = eigh(gram)
    kept = values > 1e-10 * values.max(initial=0.0)
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T)
