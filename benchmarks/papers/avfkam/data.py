"""The paper's data sets as far as they are at hand, as it uses them: the first class is positive.

Where a data set has a training and a test file the paper's sizes are those of both together, so
they are joined, and 80 % of the rows, drawn by class, train. Sparse sets stay sparse.

- shuttle: class 1 is the larger one (79 %), so that the AUC is that of the same ranking.
- SUSY, news20 and rcv1-small are parts of their sets (`PARTS`). Rows of news20 have unit length.
- rcv1 and real-sim: read if they lie there under LIBSVM's names; not at hand here.
- sector: 9,619 rows of 105 classes; the paper's table 2 gives 20,242 rows and a ratio of 0.92, the
  figures of another data set.
"""

from __future__ import annotations

import lzma
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from benchmarks.datasets import FOLDER, data_file

Array = npt.NDArray[Any]

PARTS = {
    "SUSY": "30,000 of 5,000,000 rows; the paper has 1,000,000",
    "news20": "the 15,935 rows of its training file, without the 3,993 of its test file",
    "rcv1-small": "1,500 rows of rcv1, which has 20,242 to train alone",
}
"""Sets of which only a part is read, and which part."""


@dataclass(frozen=True)
class Rows:
    """Training and test rows; labels 0 and 1."""

    X: Any
    y: Array
    X_test: Any
    y_test: Array


def rows_of(name: str, seed: int, most: int | None = None) -> Rows:
    """One random split of a data set; of the training rows the first ``most``, or all."""
    X, y = LOADERS[name]()
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=seed, stratify=y)
    X, y = X[:most], y[:most]
    if not sparse.issparse(X) and name in ("shuttle", "SUSY"):
        centre, width = X.mean(axis=0), X.std(axis=0)
        X, X_test = (X - centre) / width, (X_test - centre) / width
    # A column that is constant in the training rows adds nothing, and a party would refuse it.
    varying = np.flatnonzero(_span(X) > 0)
    return Rows(X[:, varying], y, X_test[:, varying], y_test)


def _span(X: Any) -> Array:
    highest, lowest = X.max(axis=0), X.min(axis=0)
    if sparse.issparse(X):
        highest, lowest = highest.toarray()[0], lowest.toarray()[0]
    return np.asarray(highest - lowest)


def _a9a() -> tuple[Any, Array]:
    X, y = _svmlight(123, "a9a/a9a.xz", "a9a/a9a.t.xz")
    return X.toarray(), (y > 0).astype(int)


def _ijcnn1() -> tuple[Any, Array]:
    X, y = _svmlight(22, "ijcnn1/ijcnn1.xz", "ijcnn1/ijcnn1.t.xz")
    return X.toarray(), (y > 0).astype(int)


def _shuttle() -> tuple[Any, Array]:
    parts = []
    for part in ("trn", "tst"):
        with lzma.open(data_file(f"shuttle/shuttle.{part}.xz")) as file:
            parts.append(np.loadtxt(file))
    table = np.vstack(parts)
    return table[:, :-1], (table[:, -1] == 1).astype(int)


def _susy() -> tuple[Any, Array]:
    with lzma.open(data_file("susy-30k/susy_30k.csv.xz")) as file:
        table = pd.read_csv(file).to_numpy(float)
    return table[:, 1:], table[:, 0].astype(int)


def _sector() -> tuple[Any, Array]:
    X, y = _svmlight(55_197, "sector/sector.scale.xz", "sector/sector.t.scale.xz")
    return X, (y == 1).astype(int)


def _news20() -> tuple[Any, Array]:
    X, y = _svmlight(62_061, "news20/news20.xz")
    return normalize(X), (y == 1).astype(int)


def _real_sim() -> tuple[Any, Array]:
    X, y = _svmlight(20_958, "real-sim/real-sim.xz")
    return X, (y > 0).astype(int)


def _rcv1_small() -> tuple[Any, Array]:
    X, y = _svmlight(47_236, "rcv1-small/rcv1_small.xz", "rcv1-small/rcv1_small.t.xz")
    return X, (y > 0).astype(int)


def _rcv1() -> tuple[Any, Array]:
    X, y = _svmlight(47_236, "rcv1/rcv1_train.binary.xz", "rcv1/rcv1_test.binary.xz")
    return X, (y > 0).astype(int)


LOADERS: Mapping[str, Callable[[], tuple[Any, Array]]] = {
    "a9a": _a9a,
    "shuttle": _shuttle,
    "ijcnn1": _ijcnn1,
    "SUSY": _susy,
    "sector": _sector,
    "news20": _news20,
    "real-sim": _real_sim,
    "rcv1": _rcv1,
    "rcv1-small": _rcv1_small,
}

FILES = {
    "a9a": "a9a/a9a.xz",
    "shuttle": "shuttle/shuttle.trn.xz",
    "ijcnn1": "ijcnn1/ijcnn1.xz",
    "SUSY": "susy-30k/susy_30k.csv.xz",
    "sector": "sector/sector.scale.xz",
    "news20": "news20/news20.xz",
    "real-sim": "real-sim/real-sim.xz",
    "rcv1": "rcv1/rcv1_train.binary.xz",
    "rcv1-small": "rcv1-small/rcv1_small.xz",
}
"""The first file of each set."""


def missing() -> dict[str, str]:
    """The sets that are not in the data folder, and the file that they would be read from."""
    return {name: path for name, path in FILES.items() if not (FOLDER / path).exists()}


def _svmlight(columns: int, *paths: str) -> tuple[Any, Array]:
    blocks, labels = [], []
    for path in paths:
        with lzma.open(data_file(path)) as file:
            X, y = load_svmlight_file(file, n_features=columns)
        blocks.append(X)
        labels.append(y)
    return sparse.vstack(blocks).tocsr(), np.concatenate(labels)
