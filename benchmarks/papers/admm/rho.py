"""Rounds to the default tolerance by ρ, in units of the loss's curvature: why 0.15 is automatic.

    python -m benchmarks.papers.admm.rho

The averaged form on seven sets with two to four parties. The best ρ differs from set to set; the
automatic one should be bad on none.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.admm import problems
from vertikal import ADMMClassifier, ADMMRegressor
from vertikal.losses.pointwise import LOSSES

FACTORS = (0.5, 0.25, 0.15, 0.08, 0.04)


def main() -> None:
    options = arguments(__doc__ or "", rounds=400)
    run = Benchmark(
        "papers-admm-rho",
        {"alpha": "1/rows", "tol": 1e-3, "most rounds": options.rounds, "factors": FACTORS},
    )
    ratios = []
    for name, model, X, y in cases():
        needed = [rounds(model, X, y, factor, options.rounds) for factor in FACTORS]
        run.figure(f"{name}: rounds by factor", dict(zip(map(str, FACTORS), needed, strict=True)))
        ratios.append(np.array(needed) / min(needed))
    for factor, column in zip(FACTORS, np.array(ratios).T, strict=True):
        run.figure(
            f"{factor:g}: rounds over the best, mean and worst",
            [float(column.mean()), float(column.max())],
        )
    run.write(options.out)


def cases() -> list[tuple[str, Any, Any, Any]]:
    a9a, sector, phishing = problems.a9a(), problems.sector(), datasets.phishing()
    return [
        ("a9a", ADMMClassifier(a9a.parties), a9a.X, a9a.y),
        ("sector", ADMMClassifier(sector.parties), sector.X, sector.y),
        ("phishing", ADMMClassifier(4), phishing.X, phishing.y),
        ("a9a, smooth hinge", ADMMClassifier(a9a.parties, loss="smooth_hinge"), a9a.X, a9a.y),
        (
            "breast cancer",
            ADMMClassifier(3, scale="standard"),
            *load_breast_cancer(return_X_y=True),
        ),
        ("digits, ten classes", ADMMClassifier(2, scale="max"), *load_digits(return_X_y=True)),
        ("diabetes", ADMMRegressor(2, scale="standard"), *load_diabetes(return_X_y=True)),
    ]


def rounds(model: Any, X: Any, y: Any, factor: float, most: int) -> int:
    rho = factor * LOSSES[model.loss].curvature_bound
    model.set_params(rho=rho, alpha=1 / len(y), max_iter=most)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return int(model.fit(X, y).n_iter_)


if __name__ == "__main__":
    main()
