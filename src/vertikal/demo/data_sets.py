"""The two data sets of the demonstration, cut into the columns of three parties each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer

from vertikal.demo.credit import LABEL_PARTY, credit_population

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class DataSet:
    """Rows that three parties share, each holding its own columns of them."""

    name: str
    title: str
    story: str
    X: Array  # (rows, columns)
    y: Array  # (rows,) of 0 and 1
    names: tuple[str, ...]  # of the columns of X
    parties: dict[str, list[str]]  # party -> names of its columns
    label_party: str

    def numbers(self) -> dict[str, list[int]]:
        """Party -> numbers of its columns in X."""
        return {
            party: [self.names.index(name) for name in columns]
            for party, columns in self.parties.items()
        }


def breast_cancer() -> DataSet:
    """569 tumours; real measurements, divided among three invented institutions."""
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
        X=np.asarray(bunch.data, np.float64),
        y=1 - np.asarray(bunch.target),
        names=names,
        parties={
            "clinic": [name for name in names if name.endswith("error")],
            "imaging": [name for name in names if name.startswith("mean")],
            "laboratory": [name for name in names if name.startswith("worst")],
        },
        label_party="clinic",
    )


def credit(rows: int, seed: int) -> DataSet:
    """A generated population of applicants; no real person is in it."""
    population = credit_population(rows, seed)
    return DataSet(
        name="credit",
        title="Credit default",
        story=(
            "Will a loan default? A generated population: a lender knows the loans and how they "
            "ended, a bank the accounts, a shop the orders. Much of the risk lies in what two of "
            "them know together, such as a large loan at a small balance, which neither a single "
            "party nor a weighted sum of all columns can see."
        ),
        X=population.X,
        y=population.y,
        names=population.names,
        parties=population.columns,
        label_party=LABEL_PARTY,
    )
