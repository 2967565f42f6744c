"""FDSKL Figure 6, its column of SecureBoost: test errors over random splits.

    python -m benchmarks.papers.fdskl.boosting
    python -m benchmarks.papers.fdskl.boosting --data phishing,a9a --splits 1

SecureBoost is lossless: its trees are those of columns in one place, and encryption makes them only
slower (`times`). So scikit-learn grows them with the settings of `SecureBoostClassifier`, those of
FATE: 3 trees. The paper does not say how many it grew; ``trees`` of them are tried as well. The
splits are those of `errors`. What is not in the data folder is listed and left out.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks.harness import Benchmark, arguments
from benchmarks.papers.fdskl.data import PARTS, SETS, missing, split_of
from vertikal.estimators.baselines import SecureBoostClassifier
from vertikal.reporting.bar_chart import bar_chart

FEW = 3
"""Trees by FATE's defaults."""


def main() -> None:
    options = arguments(__doc__ or "", data="", splits=3, rows=0, trees=50)
    run = Benchmark("papers-fdskl-boosting", vars(options) | {"out": "", "parts": PARTS})
    absent = missing()
    means: dict[str, dict[str, float]] = {}
    for name in options.data.split(",") if options.data else SETS:
        if name in absent:
            run.figure(f"{name}: left out, not in the data folder", absent[name])
            continue
        splits = [split_of(name, seed, options.rows) for seed in range(options.splits)]
        for trees in (FEW, options.trees):
            found = []
            for split in splits:
                model = pooled(trees).fit(split.X, split.y)
                found.append(float(np.mean(model.predict(split.X_test) != split.y_test)))
            words = f"{trees} trees"
            mean = run.figure(f"{name}: {words}: test error, mean", float(np.mean(found)))
            means[f"{name}, {words}"] = {"test error": mean}
            run.figure(f"{name}: {words}: standard deviation", float(np.std(found)))
            run.figures[f"{name}: {words}: test errors by split"] = found
    run.write(options.out)
    if means:
        chart = bar_chart(
            means,
            title="SecureBoost: test error, mean over splits",
            value_text=lambda value: f"{value:.4f}",
            width=720,
        )
        run.draw(options.out, chart)


def pooled(trees: int) -> HistGradientBoostingClassifier:
    """The trees of `SecureBoostClassifier` on columns in one place."""
    given = SecureBoostClassifier()
    return HistGradientBoostingClassifier(
        learning_rate=given.learning_rate,
        max_iter=trees,
        max_depth=given.depth,
        max_leaf_nodes=None,
        max_bins=given.bins,
        l2_regularization=given.reg_lambda,
        min_samples_leaf=1,
        early_stopping=False,
    )


if __name__ == "__main__":
    main()
