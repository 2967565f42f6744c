"""Four models on one data set, measured, and what the parties sent one another for one of them.

Nothing is printed or drawn here, and no figure is written down: all of them are measured.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vertikal.algorithms.tuned.shard import TunedShard
from vertikal.baselines import PooledKernelClassifier
from vertikal.demo.data_sets import DataSet
from vertikal.demo.federated import FederatedRun, job_of, train
from vertikal.kernels.random_features import FourierMap
from vertikal.node.runs.progress import Progress, Tell
from vertikal.privacy.ledger import Entry
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]

SWEEP = (64, 128, 256, 512, 1024, 2048)
TEST_SHARE = 0.25
OPEN_TITLE = 'Disclosure "open": what the label party could do'


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
class LedgerLine:
    """All messages of one kind: parties that sent and received them, and what these learn."""

    senders: str
    receivers: str
    what: str
    form: str  # "masked": noise to everyone but the party that gets the sum; else "open"
    size: int
    learns: str


@dataclass(frozen=True)
class DataSetComparison:
    """All that the demonstration says about one data set."""

    data: DataSet
    train_rows: int
    test_rows: int
    positives: float  # share of y = 1
    directions: int  # D
    mesh: str
    models: dict[str, ModelResult]  # "alone", "linear", "federated" and "pooled"
    objective: list[float]  # by iteration of the federated solver
    gradient: list[float]
    stages: list[tuple[str, str, float, int]]  # stage, party, seconds, bytes sent
    ledger: list[Entry]
    settings: dict[str, str]

    @property
    def split(self) -> str:
        """Numbers of rows, and the share of positive ones, in words."""
        return (
            f"trained on {self.train_rows:,} rows, tested on {self.test_rows:,} others, "
            f"{self.positives:.0%} positive"
        )

    @property
    def open_warning(self) -> str:
        """Meaning of disclosure "open" for this run, in plain words."""
        return (
            "On the way the sums are masked: whoever intercepts or relays a message about the "
            f'columns sees noise. But with disclosure "open" the label party '
            f"({self.data.label_party}) in the end holds the sums themselves: {self.directions:,} "
            "phases of each person. From these it can recover other parties' columns by "
            "statistical means (blind source separation), yes/no columns almost exactly, although "
            "no column was ever sent. That suits experiments, such as this one, and the "
            "reproduction of papers. Between organisations, use it only where each owner would "
            "also show its columns to the label party."
        )

    def ledger_lines(self) -> list[LedgerLine]:
        """Sum up the ledger by kind of message."""
        kinds: dict[str, list[Entry]] = {}
        for entry in self.ledger:
            kinds.setdefault(entry.disclosure.name, []).append(entry)
        return [
            LedgerLine(
                self._people({entry.sender for entry in entries}),
                self._people({entry.receiver for entry in entries}),
                entries[0].disclosure.what,
                form_text(entries[0]),
                sum(entry.bytes for entry in entries),
                entries[0].disclosure.learns,
            )
            for entries in kinds.values()
        ]

    def _people(self, names: set[str]) -> str:
        everybody = self.data.columns
        return "all" if names == set(everybody) else ", ".join(n for n in everybody if n in names)


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


def form_text(entry: Entry) -> str:
    """Say whether messages are noise to everyone but the party that gets the sum."""
    return "masked" if entry.disclosure.masked else "open"


def federate(data: DataSet, seed: int, mesh: str, tell: Tell) -> FederatedRun:
    """Train the federated model of a comparison; ``tell`` hears of its progress."""
    return _federated(data, _Split.of(data, seed), None, seed, mesh, tell)


def compare(data: DataSet, seed: int, federated: FederatedRun) -> DataSetComparison:
    """Train the other three models and set them beside the federated one."""
    split = _Split.of(data, seed)
    own = split.only(data.numbers()[data.label_party])
    trees = HistGradientBoostingClassifier(random_state=seed)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    models = {
        "alone": _measure(f"{data.label_party} alone (trees)", clone(trees), own, "its own only"),
        "linear": _measure("linear on all columns", linear, split, "all, pooled in the clear"),
        "federated": _result(
            "federated kernel",
            federated.values,
            split,
            federated.seconds,
            federated.bytes_sent,
            "all, as masked sums",
        ),
        "pooled": _measure("trees on all columns", trees, split, "all, pooled in the clear"),
    }
    training, shard = federated.shard.training, federated.shard
    assert isinstance(shard, TunedShard)
    return DataSetComparison(
        data=data,
        train_rows=len(split.y),
        test_rows=len(split.y_test),
        positives=float(data.y.mean()),
        directions=shard.settings.all_components(),
        mesh=federated.mesh,
        models=models,
        objective=list(training.objective),
        gradient=list(training.gradient),
        stages=federated.stages(),
        ledger=federated.entries(),
        settings=_settings(federated, shard, seed),
    )


def sweep(data: DataSet, seed: int) -> Sweep:
    """Train federated and pooled models with more and more directions, one plain fit each.

    The parties are threads of this process, whatever the mesh of the comparison: that gives the
    same shards.
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
    data: DataSet, split: _Split, width: int | None, seed: int, mesh: str, tell: Tell
) -> FederatedRun:
    job = job_of(data, seed, width)
    return train(data, job, split.X, split.y, split.X_test, mesh, tell)


def _silent(progress: Progress) -> None:
    pass


def _kernel(width: int, seed: int) -> dict[str, Any]:
    """Parameters that all kernel machines of the demonstration share."""
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


def _settings(run: FederatedRun, shard: TunedShard, seed: int) -> dict[str, str]:
    """Settings that were asked for, and those that were found from the data, in words."""
    settings, training, chosen = shard.settings, shard.training, shard.trials[-1]
    own = sorted(shard.column_relevance().items(), key=lambda item: -item[1])
    return {
        "parties": ", ".join(settings.parties),
        "label party": ", ".join(settings.label_parties),
        "mesh": {"network": "processes, mutual TLS", "local": "threads"}[run.mesh],
        "masking": run.job.masking,
        "disclosure": settings.level,
        "encoding": shard.encoding.kind,
        "kernel": "Gaussian and Laplace",
        "rounds of relevance": str(shard.rounds),
        "bandwidths, of the typical distance": f"{chosen.gaussian:.2f} and {chosen.laplace:.2f}",
        "directions": f"{shard.n_components:,}, private",
        "penalty λ": f"{training.penalty:.3g}",
        "fits tried": str(len(shard.trials)),
        "iterations of the last": str(training.iterations),
        "columns of the label party that matter most": ", ".join(name for name, _ in own[:3]),
        "seed": str(seed),
    }
