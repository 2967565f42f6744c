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

from vertikal import FDSKLClassifier
from vertikal.baselines import PooledKernelClassifier
from vertikal.cli.demo_data import DataSet
from vertikal.clock import Observer
from vertikal.kernels.random_features import FourierMap
from vertikal.secure.ring import Ring

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


def compare(data: DataSet, seed: int, verbose: bool | Observer = False) -> Comparison:
    """Train the four models; ``verbose`` shows the progress of the federated one."""
    split = _Split.of(data, seed)
    own = split.only(data.numbers()[data.label_party])
    kernel = _kernel(DIRECTIONS, seed)
    federated = FDSKLClassifier(
        data.numbers(), label_parties=data.label_party, verbose=verbose, **kernel
    )
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    models = [
        _measure(
            f"{data.label_party} alone", PooledKernelClassifier(**kernel), own, "its own only"
        ),
        _measure("linear on all columns", linear, split, "all, pooled in the clear"),
        _measure("federated kernel", federated, split, "all, as masked sums"),
        _measure(
            "same kernel, pooled",
            PooledKernelClassifier(**kernel),
            split,
            "all, pooled in the clear",
        ),
    ]
    training = federated.shards_[data.label_party].training
    return Comparison(
        data=data,
        train_rows=len(split.y),
        test_rows=len(split.y_test),
        positives=float(data.y.mean()),
        directions=DIRECTIONS,
        models=models,
        objective=list(training.objective),
        gradient=list(training.gradient),
        stages=federated.report_.rows(),
        ledger=[
            {"name": entry.disclosure.name, **row}
            for entry, row in zip(
                federated.ledger_.entries(), federated.ledger_.rows(), strict=True
            )
        ],
        settings=_settings(federated, seed),
    )


def sweep(data: DataSet, seed: int) -> Sweep:
    """AUC of federated and pooled models with more and more directions."""
    split = _Split.of(data, seed)
    curve = Sweep([], [], [], [])
    for width in SWEEP:
        kernel = _kernel(width, seed)
        federated = FDSKLClassifier(data.numbers(), label_parties=data.label_party, **kernel)
        pooled = PooledKernelClassifier(**kernel)
        curve.directions.append(width)
        curve.federated.append(_auc(federated.fit(split.X, split.y), split))
        curve.pooled.append(_auc(pooled.fit(split.X, split.y), split))
        curve.mesh_bytes.append(sum(federated.report_.bytes_sent.values()))
    return curve


def _kernel(width: int, seed: int) -> dict[str, Any]:
    """The parameters that all kernel machines of the demonstration share."""
    return {"scale": "standard", "n_directions": width, "random_state": seed}


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
    values = model.decision_function(split.X_test)
    false, true, _ = roc_curve(split.y_test, values)
    report = getattr(model, "report_", None)
    return ModelResult(
        name=name,
        # Positive values mean class 1 for all four, so one joint prediction serves both numbers.
        accuracy=float(np.mean((values > 0) == split.y_test)),
        auc=float(roc_auc_score(split.y_test, values)),
        seconds=seconds,
        mesh_bytes=None if report is None else sum(report.bytes_sent.values()),
        columns=columns,
        roc=(false.tolist(), true.tolist()),
    )


def _auc(model: Any, split: _Split) -> float:
    return float(roc_auc_score(split.y_test, model.decision_function(split.X_test)))


def _settings(model: FDSKLClassifier, seed: int) -> dict[str, str]:
    """What was asked for, and what was found from the data, in words."""
    settings = model.settings_
    return {
        "parties": ", ".join(settings.parties),
        "label party": ", ".join(settings.label_parties),
        "kernel": settings.kernel,
        "bandwidth σ": f"{model.bandwidth_:.4g} ({settings.bandwidth})",
        "directions D": f"{settings.n_directions:,}, {settings.directions}",
        "bits of a phase": str(settings.ring_bits),
        "masking": model.masking,
        "disclosure": settings.disclosure,
        "scaling": str(settings.scale),
        "loss": settings.loss,
        "penalty λ": f"{model.penalty_:.3g} ({settings.penalty})",
        "solver": f"{settings.solver}, tolerance {settings.tolerance:g}",
        "iterations": str(model.n_iter_),
        "seed": str(seed),
    }
