"""Kernel machines on the secure kernel: the label party learns from it, nobody else does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.gram.kernel_choice import KernelChoice
from vertikal.algorithms.gram.secgram import GramShard, cross_gram, gram_matrix
from vertikal.algorithms.gram.settings import SecureKernelSettings
from vertikal.data.scaling import Scaling
from vertikal.errors import InputError
from vertikal.party.party import Labels, Party

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
    rows: Array  # (rows, own columns)
    support: Array = field(default_factory=_none)  # (carrying rows,) row numbers
    coefficients: Array = field(default_factory=lambda: np.zeros((0, 1)))  # (carrying, outputs)
    constant: Array = field(default_factory=lambda: np.zeros(1))  # (outputs,)
    kernel: KernelChoice | None = None

    @property
    def gram(self) -> GramShard:
        return GramShard(self.party, self.columns, self.scaling, self.rows)


def train(party: Party, settings: SecureKernelSettings) -> SecureKernelShard:
    """Sum the kernel matrix with all parties, and learn from it at the label party."""
    settings.check_rows(party.table.rows)
    own, gram = gram_matrix(party, settings.gram)
    rows = np.asarray(own.rows.toarray() if hasattr(own.rows, "toarray") else own.rows)
    shard = SecureKernelShard(party.name, settings, own.columns, own.scaling, rows)
    if gram is None or party.labels is None:
        return shard
    labels = party.labels
    kernel = settings.choice.fixed(gram, labels.weights, settings.seed, 1)
    with party.clock.stage("solve"):
        support, coefficients, constant = fit(kernel(gram), labels, settings)
    return SecureKernelShard(
        party.name,
        settings,
        own.columns,
        own.scaling,
        rows,
        support,
        coefficients,
        constant,
        kernel,
    )


def fit(
    matrix: Array, labels: Labels, settings: SecureKernelSettings
) -> tuple[Array, Array, Array]:
    """Fit one machine per output; return carrying rows, their coefficients, and constants."""
    used = np.flatnonzero(labels.weights)
    kernel, weights = matrix[np.ix_(used, used)], labels.weights[used]
    targets = labels.targets[used]
    whole = np.zeros((len(used), targets.shape[1]))
    constant = np.zeros(targets.shape[1])
    for output in range(targets.shape[1]):
        solve = _svc if settings.machine == "svc" else _ridge
        whole[:, output], constant[output] = solve(kernel, targets[:, output], weights, settings)
    carrying = np.flatnonzero(whole.any(axis=1))
    return used[carrying], whole[carrying], constant


def _svc(
    kernel: Array, targets: Array, weights: Array, settings: SecureKernelSettings
) -> tuple[Array, float]:
    from sklearn.svm import SVC

    if len(np.unique(np.sign(targets))) < 2:
        raise InputError("labels must be of two classes, got one")
    found = SVC(C=settings.C, kernel="precomputed").fit(kernel, np.sign(targets), weights)
    whole = np.zeros(len(targets))
    whole[found.support_] = found.dual_coef_[0]
    return whole, float(found.intercept_[0])


def _ridge(
    kernel: Array, targets: Array, weights: Array, settings: SecureKernelSettings
) -> tuple[Array, float]:
    from sklearn.kernel_ridge import KernelRidge

    mean = float(np.average(targets, weights=weights))
    ridge = KernelRidge(alpha=settings.alpha, kernel="precomputed")
    return np.asarray(ridge.fit(kernel, targets - mean, weights).dual_coef_), mean


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
