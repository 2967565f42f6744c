"""Rows that three parties share, each holding its own columns of them; the breast cancer data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class DataSet:
    """Rows that three parties share, each holding its own columns of them."""

    name: str
    title: str
    story: str
    columns: dict[str, list[str]]  # party -> names of its columns
    names: tuple[str, ...]  # of all columns, in the order of X
    X: Array  # (rows, columns) float64
    y: Array  # (rows,) of 0 and 1
    label_party: str

    def numbers(self) -> dict[str, list[int]]:
        """Map each party to the numbers of its columns in X."""
        return {
            party: [self.names.index(name) for name in names]
            for party, names in self.columns.items()
        }


def breast_cancer() -> DataSet:
    """Divide 569 tumours, real measurements, among three invented institutions."""
    bunch = load_breast_cancer()
    names = tuple(str(name) for name in bunch.feature_names)
    return DataSet(
        name="cancer",
        title="Breast cancer",
        story=(
            "Is a tumour malignant? Real measurements of cell nuclei (scikit-learn's breast "
            "cancer data), divided among three invented institutions: a clinic that knows the "
            "diagnosis and how much the nuclei of a sample vary, an imaging centre with their "
            "means, and a laboratory with their extremes. Here a straight line does well already."
        ),
        columns={
            "clinic": [name for name in names if name.endswith("error")],
            "imaging": [name for name in names if name.startswith("mean")],
            "laboratory": [name for name in names if name.startswith("worst")],
        },
        names=names,
        X=np.asarray(bunch.data, np.float64),
        y=1 - np.asarray(bunch.target),
        label_party="clinic",
    )
