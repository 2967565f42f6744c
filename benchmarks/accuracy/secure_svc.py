"""SVC on the secure kernel matrix of a9a's first 5,000 rows, four parties, against pooled columns.

python -m benchmarks.accuracy.secure_svc
"""

from __future__ import annotations

import numpy as np
from sklearn.svm import SVC

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments, seconds
from vertikal import SecureKernelSVC


def main() -> None:
    options = arguments(__doc__ or "", rows=5000)
    run = Benchmark("secure-svc", {"gamma": 0.02, "C": 1.0, "parties": 4, "rows": options.rows})
    split = datasets.a9a().head(options.rows)
    model = SecureKernelSVC(parties=4, gamma=0.02)
    run.figure("seconds to fit", seconds(lambda: model.fit(split.X, split.y)))
    pooled = SVC(gamma=0.02).fit(split.X, split.y)
    same = float(np.mean(model.predict(split.X_test) == pooled.predict(split.X_test)))
    run.figure("ring bits", model.fixed_point_.bits)
    run.target("rows of the test file with the same prediction", same, 0.999, at_most=False)
    run.write(options.out)


if __name__ == "__main__":
    main()
