"""FDSKL's ten data sets, 3:1 by a seeded draw as in the paper; training and test file are joined.

What is not in the data folder is listed by `missing`, and left out, never made smaller. gisette,
real-sim and epsilon are expected under the names of LIBSVM's page, compressed with xz:
``gisette/gisette_scale.xz``, ``real-sim/real-sim.xz``, ``epsilon/epsilon_normalized.xz``. A part of
epsilon has a name of its own (`PARTS`).
"""

from __future__ import annotations

import lzma
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split

from benchmarks.datasets import FOLDER, Split, data_file

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Source:
    """The files of one data set, and the way they are read."""

    files: tuple[str, ...]
    read: Callable[[Source], tuple[Any, Array]]
    columns: int = 0

    @property
    def here(self) -> bool:
        return all((FOLDER / name).exists() for name in self.files)


def _svmlight(source: Source) -> tuple[Any, Array]:
    blocks, labels = [], []
    for name in source.files:
        with lzma.open(data_file(name)) as file:
            X, y = load_svmlight_file(file, n_features=source.columns)
        blocks.append(X)
        labels.append(y)
    return sparse.vstack(blocks).tocsr(), np.where(np.concatenate(labels) > 0, 1.0, -1.0)


def _table(label: str, *dropped: str) -> Callable[[Source], tuple[Any, Array]]:
    """A reader of a table with named columns; empty cells become the column's mean."""

    def read(source: Source) -> tuple[Any, Array]:
        with lzma.open(data_file(source.files[0])) as file:
            frame = pd.read_csv(file)
        y = np.where(frame.pop(label) > 0, 1.0, -1.0)
        frame = frame.drop(columns=[name for name in frame if name in dropped or not name])
        return frame.fillna(frame.mean()).to_numpy(float), y

    return read


SETS = {
    "gisette": Source(("gisette/gisette_scale.xz",), _svmlight, 5000),
    "phishing": Source(("phishing/phishing.xz",), _svmlight, 68),
    "a9a": Source(("a9a/a9a.xz", "a9a/a9a.t.xz"), _svmlight, 123),
    "ijcnn1": Source(("ijcnn1/ijcnn1.xz",), _svmlight, 22),
    "cod-rna": Source(("cod-rna/cod-rna.xz",), _svmlight, 8),
    "w8a": Source(("w8a/w8a.xz", "w8a/w8a.t.xz"), _svmlight, 300),
    "real-sim": Source(("real-sim/real-sim.xz",), _svmlight, 20958),
    "epsilon": Source(("epsilon/epsilon_normalized.xz",), _svmlight, 2000),
    "epsilon-5k": Source(("epsilon-5k/epsilon_5k.csv.xz",), _table("y", "id")),
    "defaultcredit": Source(
        ("default-credit/UCI_Credit_Card.csv.xz",), _table("default.payment.next.month", "ID")
    ),
    "givemecredit": Source(
        ("give-me-some-credit/cs-training.csv.xz",), _table("SeriousDlqin2yrs", "Unnamed: 0")
    ),
}
"""The paper's Table 3, in its order, with a part of epsilon after epsilon."""

PARTS = {"epsilon-5k": "5,000 of 400,000 rows and 100 of 2,000 columns of epsilon"}
"""Sets of which only a part is read, and which part."""

WIDEST = 1000
"""Columns up to which a sparse set is made dense, scaled to mean 0 and deviation 1."""


def missing() -> dict[str, str]:
    """The sets that are not here, and the files that they would be read from."""
    return {name: ", ".join(one.files) for name, one in SETS.items() if not one.here}


def split_of(name: str, seed: int, most: int) -> Split:
    """One random split; at most ``most`` rows, drawn by the same seed, train (0: all)."""
    X, y = SETS[name].read(SETS[name])
    if sparse.issparse(X) and X.shape[1] <= WIDEST:
        X = X.toarray()
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    if most and most < len(y):
        X, _, y, _ = train_test_split(X, y, train_size=most, random_state=seed, stratify=y)
    if not sparse.issparse(X):
        centre, width = X.mean(axis=0), X.std(axis=0)
        kept = width > 0
        X, X_test = ((one[:, kept] - centre[kept]) / width[kept] for one in (X, X_test))
    return Split(name, X, y, X_test, y_test)
