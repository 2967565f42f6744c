"""Kernel machines on the secure kernel: the label party learns from it, nobody else does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.gram.kernel_choice import KernelChoice
from vertikal.algorithms.gram.secgram import (
    Gram,
    GramShard,
    cross_gram,
    gram_matrix,
    products_with,
    scaled_rows,
    tell_rows,
)
from vertikal.algorithms.gram.settings import SecureKernelSettings
from vertikal.data.scaling import Scaling
from vertikal.errors import InputError
from vertikal.party.party import Labels, Party
from vertikal.solvers.komd import separate

Array = npt.NDArray[Any]


def _none() -> Array:
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class SecureKernelShard:
    """Part of one party: its own scaled training rows, which predictions need.

    The label party also keeps which rows carry the model, their coefficients, and the kernel.
    """

    party: str
    settings: SecureKernelSettings
    columns: tuple[str, ...]
    scaling: Scaling
    rows: Array  # (rows, own columns), or the landmarks alone
    support: Array = field(default_factory=_none)  # (carrying rows,) their places in ``rows``
    coefficients: Array = field(default_factory=lambda: np.zeros((0, 1)))  # (carrying, outputs)
    constant: Array = field(default_factory=lambda: np.zeros(1))  # (outputs,)
    kernel: KernelChoice | None = None

    @property
    def gram(self) -> GramShard:
        return GramShard(self.party, self.columns, self.scaling, self.rows)


@dataclass(frozen=True)
class FittedMachine:
    """A machine: the rows that carry it, their coefficients (carrying, outputs), constants."""

    support: Array
    coefficients: Array
    constant: Array
    kernel: KernelChoice


def train(party: Party, settings: SecureKernelSettings) -> SecureKernelShard:
    """Sum the kernel with all parties, or landmark columns of it; the label party learns from it.

    With landmarks each party keeps these rows alone.
    """
    settings.check_rows(party.table.rows)
    chosen: Array | None = None
    if settings.landmarks is None:
        own, gram = gram_matrix(party, settings.gram)
        kept = own.rows
    else:
        own = scaled_rows(party, settings.gram)
        chosen = tell_rows(party, party.table.rows, _landmarks(party, settings))
        kept = own.rows[chosen]
        gram = products_with(party, kept, own.scaling, settings.gram, chosen)
    rows = np.asarray(kept.toarray() if hasattr(kept, "toarray") else kept)
    shard = SecureKernelShard(party.name, settings, own.columns, own.scaling, rows)
    if gram is None or party.labels is None:
        return shard
    with party.clock.stage("solve"):
        if chosen is None:
            found = fit(gram, party.labels, settings)
        else:
            found = fit_on_landmarks(gram, chosen, party.labels, settings)
    return replace(
        shard,
        support=found.support,
        coefficients=found.coefficients,
        constant=found.constant,
        kernel=found.kernel,
    )


def _landmarks(party: Party, settings: SecureKernelSettings) -> Array | None:
    """Draw the landmarks at the label party, from the rows that it learns from."""
    if party.labels is None or settings.landmarks is None:
        return None
    used = np.flatnonzero(party.labels.weights)
    draw = np.random.default_rng(settings.seed).permutation(used)
    return np.sort(draw[: settings.landmarks])


def fit(gram: Gram, labels: Labels, settings: SecureKernelSettings) -> FittedMachine:
    """Fit one machine per output on the kernel of all rows."""
    choice = settings.choice.fixed(gram, labels.weights, settings.seed)
    used = np.flatnonzero(labels.weights)
    kernel, weights = choice(gram)[np.ix_(used, used)], labels.weights[used]
    targets = labels.targets[used]
    whole = np.zeros((len(used), targets.shape[1]))
    constant = np.zeros(targets.shape[1])
    for output in range(targets.shape[1]):
        solve = {"svc": _svc, "ridge": _ridge, "komd": _komd}[settings.machine]
        whole[:, output], constant[output] = solve(kernel, targets[:, output], weights, settings)
    carrying = np.flatnonzero(whole.any(axis=1))
    return FittedMachine(used[carrying], whole[carrying], constant, choice)


def fit_on_landmarks(
    gram: Gram, landmarks: Array, labels: Labels, settings: SecureKernelSettings
) -> FittedMachine:
    """Fit the same machines on the kernel that landmark columns give (Nyström).

    ``gram`` (rows, landmarks). With C = k(rows, landmarks) and W = k(landmarks, landmarks) the
    kernel is C·W⁺·Cᵀ = Φ·Φᵀ for Φ = C·V·λ^(-1/2), where V and λ are eigenvectors and eigenvalues of
    W. A machine on Φ has weights w, and V·λ^(-1/2)·w are coefficients of the landmarks.
    """
    square = Gram(gram.values[landmarks], gram.right, gram.right, gram.fixed_point, gram.columns)
    choice = settings.choice.fixed(square, labels.weights[landmarks], settings.seed)
    eigenvalues, vectors = np.linalg.eigh(choice(square))
    # Directions as small as the rounding of the sums are none.
    held = eigenvalues > eigenvalues[-1] * max(1e-12, gram.fixed_point.error)
    if not held.any():
        raise InputError("landmarks must differ from zero, got a kernel of zeros")
    unfold = vectors[:, held] / np.sqrt(eigenvalues[held])  # (landmarks, rank)
    used = np.flatnonzero(labels.weights)
    features, weights = choice(gram)[used] @ unfold, labels.weights[used]
    targets = labels.targets[used]
    coefficients = np.zeros((len(landmarks), targets.shape[1]))
    constant = np.zeros(targets.shape[1])
    for output in range(targets.shape[1]):
        solve = {"svc": _linear_svc, "ridge": _linear_ridge, "komd": _linear_komd}[settings.machine]
        found, constant[output] = solve(features, targets[:, output], weights, settings)
        coefficients[:, output] = unfold @ found
    return FittedMachine(np.arange(len(landmarks)), coefficients, constant, choice)


def _svc(
    kernel: Array, targets: Array, weights: Array, settings: SecureKernelSettings
) -> tuple[Array, float]:
    from sklearn.svm import SVC

    found = SVC(C=settings.C, kernel="precomputed").fit(kernel, _signs(targets), weights)
    whole = np.zeros(len(targets))
    whole[found.support_] = found.dual_coef_[0]
    return whole, float(found.intercept_[0])


def _linear_svc(
    features: Array, targets: Array, weights: Array, settings: SecureKernelSettings
) -> tuple[Array, float]:
    from sklearn.svm import SVC

    found = SVC(C=settings.C, kernel="linear").fit(features, _signs(targets), weights)
    return np.asarray(found.coef_[0]), float(found.intercept_[0])


def _ridge(
    kernel: Array, targets: Array, weights: Array, settings: SecureKernelSettings
) -> tuple[Array, float]:
    from sklearn.kernel_ridge import KernelRidge

    mean = float(np.average(targets, weights=weights))
    ridge = KernelRidge(alpha=settings.alpha, kernel="precomputed")
    return np.asarray(ridge.fit(kernel, targets - mean, weights).dual_coef_), mean


def _linear_ridge(
    features: Array, targets: Array, weights: Array, settings: SecureKernelSettings
) -> tuple[Array, float]:
    from sklearn.linear_model import Ridge

    mean = float(np.average(targets, weights=weights))
    ridge = Ridge(alpha=settings.alpha, fit_intercept=False)
    return np.asarray(ridge.fit(features, targets - mean, weights).coef_), mean


def _komd(
    kernel: Array, targets: Array, weights: Array, settings: SecureKernelSettings
) -> tuple[Array, float]:
    """KOMD: f is zero half-way between the nearest points of both hulls."""
    signs = _signs(targets)
    # The largest row sum bounds the largest eigenvalue.
    largest = float(np.abs(kernel).sum(axis=1).max())
    hulls = signs * separate(kernel.__matmul__, largest, signs, settings.alpha / weights)
    return hulls, -float(np.abs(hulls) @ (kernel @ hulls)) / 2


def _linear_komd(
    features: Array, targets: Array, weights: Array, settings: SecureKernelSettings
) -> tuple[Array, float]:
    signs = _signs(targets)
    largest = float(np.linalg.eigvalsh(features.T @ features)[-1])
    hulls = signs * separate(
        lambda vector: features @ (features.T @ vector), largest, signs, settings.alpha / weights
    )
    found = features.T @ hulls
    return found, -float(np.abs(hulls) @ (features @ found)) / 2


def _signs(targets: Array) -> Array:
    signs = np.sign(targets)
    if len(np.unique(signs)) < 2:
        raise InputError("labels must be of two classes, got one")
    return np.asarray(signs)


def predict(party: Party, shard: SecureKernelShard) -> Array | None:
    """Predict at this party: f (rows, outputs) at the leader, None elsewhere."""
    support = shard.support if party.leads else None
    cross = cross_gram(party, shard.gram, shard.settings.gram, support)
    if cross is None or shard.kernel is None:
        return None
    return np.asarray(shard.kernel(cross) @ shard.coefficients + shard.constant)


def stored(shard: SecureKernelShard) -> dict[str, Any]:
    """Return what the owner is told about its shard."""
    told: dict[str, Any] = {"training rows kept": len(shard.rows)}
    if shard.kernel is not None:
        told |= {"carrying rows": len(shard.support), "gamma": shard.kernel.gamma}
    return told
