"""Test error and AUC of FDSKL on a9a, ijcnn1 and cod-rna, 4 parties; 8 bits against 32 and floats.

    python -m benchmarks.accuracy.figures

cod-rna is held against scikit-learn's SVC, tuned over a small grid on the same split.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from benchmarks import datasets
from benchmarks.datasets import Split
from benchmarks.harness import Benchmark, arguments
from vertikal import FDSKLClassifier
from vertikal.algorithms.kernel_machine.directions import draw_directions
from vertikal.baselines.pooled_features import CosineMap, Draw
from vertikal.compute.open_operator import OpenOperator
from vertikal.data.scaling import Scaling
from vertikal.losses.pointwise import LOSSES
from vertikal.solvers.lbfgs import sample_rows, solve
from vertikal.solvers.objective import RowObjective

PARTIES = 4
GRID = {"C": (8.0, 32.0, 128.0), "gamma": (2.0, 8.0, 32.0)}


def bandwidth(gamma: float) -> float:
    """σ of exp(−‖x − x'‖²/2σ²) for γ of exp(−γ‖x − x'‖²)."""
    return float((2 * gamma) ** -0.5)


def scores(model: Any, split: Split) -> tuple[float, float]:
    """Test error and AUC."""
    f = model.decision_function(split.X_test)
    return float(((f > 0) != (split.y_test > 0)).mean()), float(roc_auc_score(split.y_test, f))


def fit(split: Split, directions: int, gamma: float, penalty: float, bits: int = 8) -> Any:
    return FDSKLClassifier(
        PARTIES,
        n_components=directions,
        bandwidth=bandwidth(gamma),
        alpha=penalty,
        feature_map={"name": "fourier", "bits": bits},
        random_state=0,
    ).fit(split.X, split.y)


def pooled(model: FDSKLClassifier, split: Split) -> tuple[float, float]:
    """Test error and AUC of float32 features of pooled columns under the model's own directions."""
    (owner,) = model.settings_.label_parties
    drawn = [draw_directions(shard, owner) for shard in model.shards_.values()]
    omega = np.concatenate([part.directions for part in drawn])
    turns = np.sum([part.offsets / 2**model.settings_.feature_map.bits for part in drawn], axis=0)
    columns = omega.shape[0]
    cosines = CosineMap(Draw(omega, turns), Scaling([0.0] * columns, [1.0] * columns))
    share = float((split.y > 0).mean())
    loss = LOSSES["logistic"]
    objective = RowObjective(
        split.y[:, None],
        np.ones(len(split.y)),
        loss,
        model.alpha_,
        np.array([loss.constant(share)]),
    )
    operator = OpenOperator(cosines, len(split.y), cosines.local(split.X))
    sample = sample_rows(len(split.y), omega.shape[1], 0)
    found = solve(operator, objective, sample=sample).coefficients
    f = cosines.local(split.X_test) @ found[:, 0] + objective.constant
    return float(((f > 0) != (split.y_test > 0)).mean()), float(roc_auc_score(split.y_test, f))


def tuned_svc(split: Split) -> tuple[SVC, dict[str, float]]:
    """The best of a small grid, chosen on a quarter of a sample of the training rows."""
    X, _, y, _ = train_test_split(
        split.X, split.y, train_size=12000, random_state=0, stratify=split.y
    )
    X, X_held, y, y_held = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    best = max(
        ({"C": c, "gamma": g} for c in GRID["C"] for g in GRID["gamma"]),
        key=lambda setting: SVC(**setting).fit(X, y).score(X_held, y_held),
    )
    return SVC(**best).fit(split.X, split.y), best


def main() -> None:
    options = arguments(__doc__ or "")
    run = Benchmark(
        "accuracy-figures",
        {
            "parties": PARTIES,
            "random_state": 0,
            "a9a": {"D": 1024, "gamma": 0.02, "alpha": 1e-5},
            "ijcnn1": {"D": [1024, 4096], "gamma": 1.0, "alpha": 1e-6},
            "cod-rna": {"D": 2048, "gamma": 8.0, "alpha": 1e-7, "split": "3:1, scaled by maxima"},
        },
    )

    a9a = datasets.a9a()
    error, auc = scores(fit(a9a, 1024, 0.02, 1e-5), a9a)
    run.target("a9a, D = 1024: error", error, 0.150, at_most=True)
    run.target("a9a, D = 1024: AUC", auc, 0.903, at_most=False)

    ijcnn1 = datasets.ijcnn1()
    error_1024, auc_1024 = scores(fit(ijcnn1, 1024, 1.0, 1e-6), ijcnn1)
    run.figure("ijcnn1, D = 1024: error", error_1024)
    run.target("ijcnn1, D = 1024: AUC", auc_1024, 0.978, at_most=False)
    error, auc = scores(fit(ijcnn1, 4096, 1.0, 1e-6), ijcnn1)
    run.target("ijcnn1, D = 4096: error", error, 0.020, at_most=True)
    run.target("ijcnn1, D = 4096: AUC", auc, 0.990, at_most=False)

    cod_rna = datasets.cod_rna()
    svc, best = tuned_svc(cod_rna)
    svc_error, _ = scores(svc, cod_rna)
    run.figure("cod-rna: SVC's tuned settings", best)
    run.figure("cod-rna: SVC's error", svc_error)
    error, _ = scores(fit(cod_rna, 2048, 8.0, 1e-7), cod_rna)
    run.figure("cod-rna: error", error)
    run.target("cod-rna: error beyond SVC's", error - svc_error, 0.003, at_most=True)

    # The width of the ring, and float32 features of pooled columns, all with the same directions.
    for split, directions, gamma, penalty in (
        (a9a, 1024, 0.02, 1e-5),
        (ijcnn1, 1024, 1.0, 1e-6),
        (cod_rna, 2048, 8.0, 1e-7),
    ):
        model = fit(split, directions, gamma, penalty)
        error_8, auc_8 = scores(model, split)
        error_32, auc_32 = scores(fit(split, directions, gamma, penalty, bits=32), split)
        name = f"{split.name}: 8 bits against 32,"
        run.target(f"{name} error apart", abs(error_8 - error_32), 0.001, at_most=True)
        run.target(f"{name} AUC apart", abs(auc_8 - auc_32), 0.001, at_most=True)
        error_f, auc_f = pooled(model, split)
        name = f"{split.name}: 8 bits against pooled float32,"
        run.target(f"{name} error apart", abs(error_8 - error_f), 0.001, at_most=True)
        run.target(f"{name} AUC apart", abs(auc_8 - auc_f), 0.001, at_most=True)
    run.write(options.out)


if __name__ == "__main__":
    main()
