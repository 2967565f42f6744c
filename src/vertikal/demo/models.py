"""The comparisons of the demonstration: four models on one data set, as plain numbers.

Nothing is printed or drawn here, and no figure is written down: all of them are measured.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vertikal.baselines import PooledKernelClassifier
from vertikal.demo.data_sets import DataSet
from vertikal.demo.federated import FederatedRun, job_of, train
from vertikal.kernels.random_features import FourierMap
from vertikal.node.runs.progress import Progress
from vertikal.node.runs.subprocesses import Tell
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]

DIRECTIONS = 2048
SWEEP = (64, 128, 256, 512, 1024, 2048)
TEST_SHARE = 0.25
ALONE, LINEAR, FEDERATED, POOLED = range(4)
"""The places of the four models in a comparison."""


@dataclass(frozen=True)
class ModelResult:
    """One model on the rows that no model was trained on."""

    name: str
    accuracy: float
    auc: float
    seconds: float  # of training
    mesh_bytes: int | None  # in training; None where there is no mesh
    columns: str  # whose columns it needs, and who sees them
    roc: tuple[list[float], list[float]]  # false and true positive rates


@dataclass(frozen=True)
class Comparison:
    """All that the demonstration says about one data set."""

    data: DataSet
    train_rows: int
    test_rows: int
    positives: float  # share of y = 1
    directions: int  # D
    mesh: str
    models: list[ModelResult]
    objective: list[float]  # by iteration of the federated solver
    gradient: list[float]
    stages: list[tuple[str, str, float, int]]  # stage, party, seconds, bytes sent
    ledger: list[dict[str, Any]]
    settings: dict[str, str]


@dataclass(frozen=True)
class Sweep:
    """AUC, and what is sent in training, against the number of directions."""

    directions: list[int]
    federated: list[float]  # AUC
    pooled: list[float]  # AUC
    mesh_bytes: list[int]


@dataclass(frozen=True)
class _Split:
    X: Array
    y: Array
    X_test: Array
    y_test: Array

    @classmethod
    def of(cls, data: DataSet, seed: int) -> _Split:
        X, X_test, y, y_test = train_test_split(
            data.X, data.y, test_size=TEST_SHARE, stratify=data.y, random_state=seed
        )
        return cls(X, y, X_test, y_test)

    def only(self, columns: list[int]) -> _Split:
        return _Split(self.X[:, columns], self.y, self.X_test[:, columns], self.y_test)


def federate(data: DataSet, seed: int, mesh: str, tell: Tell) -> FederatedRun:
    """Train the federated model of a comparison; ``tell`` hears of its progress."""
    return _federated(data, _Split.of(data, seed), DIRECTIONS, seed, mesh, tell)


def compare(data: DataSet, seed: int, federated: FederatedRun) -> Comparison:
    """Train the other three models and set them beside the federated one."""
    split = _Split.of(data, seed)
    own = split.only(data.numbers()[data.label_party])
    kernel = _kernel(DIRECTIONS, seed)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    models = [
        _measure(
            f"{data.label_party} alone", PooledKernelClassifier(**kernel), own, "its own only"
        ),
        _measure("linear on all columns", linear, split, "all, pooled in the clear"),
        _result(
            "federated kernel",
            federated.values,
            split,
            federated.seconds,
            federated.bytes_sent,
            "all, as masked sums",
        ),
        _measure(
            "same kernel, pooled",
            PooledKernelClassifier(**kernel),
            split,
            "all, pooled in the clear",
        ),
    ]
    training = federated.shard.training
    return Comparison(
        data=data,
        train_rows=len(split.y),
        test_rows=len(split.y_test),
        positives=float(data.y.mean()),
        directions=DIRECTIONS,
        mesh=federated.mesh,
        models=models,
        objective=list(training.objective),
        gradient=list(training.gradient),
        stages=federated.stages(),
        ledger=[{"name": entry.disclosure.name, **entry.row()} for entry in federated.entries()],
        settings=_settings(federated, seed),
    )


def sweep(data: DataSet, seed: int) -> Sweep:
    """AUC of federated and pooled models with more and more directions.

    In threads of this process, whatever the mesh of the comparison: the shards are the same.
    """
    split = _Split.of(data, seed)
    curve = Sweep([], [], [], [])
    for width in SWEEP:
        federated = _federated(data, split, width, seed, "local", _silent)
        pooled = PooledKernelClassifier(**_kernel(width, seed)).fit(split.X, split.y)
        curve.directions.append(width)
        curve.federated.append(_auc(federated.values, split))
        curve.pooled.append(_auc(pooled.decision_function(split.X_test), split))
        curve.mesh_bytes.append(federated.bytes_sent)
    return curve


def _federated(
    data: DataSet, split: _Split, width: int, seed: int, mesh: str, tell: Tell
) -> FederatedRun:
    job = job_of(data, width, seed)
    return train(data, job, split.X, split.y, split.X_test, mesh, tell)


def _silent(progress: Progress) -> None:
    pass


def _kernel(width: int, seed: int) -> dict[str, Any]:
    """The parameters that all kernel machines of the demonstration share."""
    return {"scale": "standard", "n_components": width, "random_state": seed}


def warm_up() -> None:
    """Compile or load the inner loops, so that no model pays for it with its seconds."""
    ring = Ring(8)
    little = FourierMap(ring, np.ones((1, 4)), np.zeros(4, ring.dtype), 4)
    phases = little.local(np.ones((4, 1)))
    little.decode(phases)
    little.forward(phases, np.ones((4, 1)))
    little.adjoint(phases, np.ones((4, 1)))


def _measure(name: str, model: Any, split: _Split, columns: str) -> ModelResult:
    began = time.perf_counter()
    model.fit(split.X, split.y)
    seconds = time.perf_counter() - began
    return _result(name, model.decision_function(split.X_test), split, seconds, None, columns)


def _result(
    name: str, values: Array, split: _Split, seconds: float, mesh_bytes: int | None, columns: str
) -> ModelResult:
    false, true, _ = roc_curve(split.y_test, values)
    return ModelResult(
        name=name,
        # Positive values mean class 1 for all four, so one joint prediction serves both numbers.
        accuracy=float(np.mean((values > 0) == split.y_test)),
        auc=_auc(values, split),
        seconds=seconds,
        mesh_bytes=mesh_bytes,
        columns=columns,
        roc=(false.tolist(), true.tolist()),
    )


def _auc(values: Array, split: _Split) -> float:
    return float(roc_auc_score(split.y_test, values))


def _settings(run: FederatedRun, seed: int) -> dict[str, str]:
    """What was asked for, and what was found from the data, in words."""
    settings, training = run.shard.settings, run.shard.training
    return {
        "parties": ", ".join(settings.parties),
        "label party": ", ".join(settings.label_parties),
        "mesh": {"network": "processes, mutual TLS", "local": "threads"}[run.mesh],
        "kernel": settings.kernel,
        "bandwidth σ": f"{run.shard.bandwidth:.4g} ({settings.bandwidth})",
        "directions D": f"{settings.n_components:,}, {settings.directions}",
        "bits of a phase": str(settings.ring_bits),
        "masking": run.job.masking,
        "disclosure": settings.disclosure,
        "scaling": str(settings.scale),
        "loss": settings.loss,
        "penalty λ": f"{training.penalty:.3g} ({settings.alpha})",
        "solver": f"{settings.solver}, tolerance {settings.tol:g}",
        "iterations": str(training.iterations),
        "seed": str(seed),
    }
