"""Ordinary tables for the comparison with boosted trees: numbers, categories and missing cells.

A table is a frame and its labels as they come: categories are of pandas' category type, missing
cells are missing. Files come from the folder that `benchmarks.datasets` reads; `load` raises
`Absent` where there is none, so that a table that is left out is named.
"""

from __future__ import annotations

import lzma
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.datasets import (
    fetch_california_housing,
    load_breast_cancer,
    load_diabetes,
    load_svmlight_file,
    make_friedman1,
)
from sklearn.model_selection import train_test_split

from benchmarks.datasets import FOLDER

Array = npt.NDArray[Any]

ADULT = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]
HEART = [
    "age",
    "sex",
    "chest-pain",
    "blood-pressure",
    "cholesterol",
    "blood-sugar",
    "ecg",
    "heart-rate",
    "angina",
    "oldpeak",
    "slope",
    "vessels",
    "thal",
    "disease",
]
TEST_SHARE = 0.25


class Absent(Exception):
    """A table whose file is not there."""


@dataclass(frozen=True)
class OrdinaryTable:
    """A frame of columns and its labels: classes numbered from 0, or numbers if ``regression``."""

    name: str
    frame: pd.DataFrame
    y: Array
    regression: bool = False

    @property
    def metric(self) -> str:
        return "R²" if self.regression else "AUC"

    def split(self, seed: int, rows: int) -> tuple[Array, Array]:
        """Training and test rows, 75/25, by class; of the former at most ``rows``, drawn too."""
        classes = None if self.regression else self.y
        train, test = train_test_split(
            np.arange(len(self.y)), test_size=TEST_SHARE, random_state=seed, stratify=classes
        )
        if len(train) > rows:
            kept = None if classes is None else classes[train]
            train, _ = train_test_split(train, train_size=rows, random_state=seed, stratify=kept)
        return np.asarray(train), np.asarray(test)


def load(name: str) -> OrdinaryTable:
    """Load one of `TABLES`; `Absent` says which file is missing."""
    frame, y = TABLES[name]()
    frame = frame.reset_index(drop=True)
    frame.columns = [str(column) for column in frame.columns]
    for column in frame:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].astype("category")
    regression = name in REGRESSIONS
    if not regression:
        y = np.unique(y, return_inverse=True)[1]
    return OrdinaryTable(name, frame, np.asarray(y, float if regression else int), regression)


def _file(path: str) -> Any:
    if not (FOLDER / path).exists():
        raise Absent(f"{path} is not in the data folder")
    return lzma.open(FOLDER / path)


def _adult() -> tuple[pd.DataFrame, Any]:
    """As UCI has it, both files; "?" is a missing cell."""
    options: dict[str, Any] = {"header": None, "names": ADULT, "skipinitialspace": True}
    options["na_values"] = "?"
    parts = [
        pd.read_csv(_file("adult/adult.data.xz"), **options),
        pd.read_csv(_file("adult/adult.test.xz"), skiprows=1, **options),
    ]
    frame = pd.concat(parts, ignore_index=True)
    frame = frame[frame["income"].notna()]
    return frame, frame.pop("income").str.contains(">50K", regex=False)


def _default_credit() -> tuple[pd.DataFrame, Any]:
    frame = pd.read_csv(_file("default-credit/UCI_Credit_Card.csv.xz")).drop(columns="ID")
    return frame, frame.pop("default.payment.next.month")


def _give_me_some_credit() -> tuple[pd.DataFrame, Any]:
    frame = pd.read_csv(_file("give-me-some-credit/cs-training.csv.xz"), index_col=0)
    return frame, frame.pop("SeriousDlqin2yrs")


def _susy() -> tuple[pd.DataFrame, Any]:
    frame = pd.read_csv(_file("susy-30k/susy_30k.csv.xz"))
    return frame, frame.pop(frame.columns[0])


def _shuttle() -> tuple[pd.DataFrame, Any]:
    """Seven classes, of which some have a dozen rows; both files."""
    options: dict[str, Any] = {"sep": r"\s+", "header": None}
    parts = [pd.read_csv(_file(f"shuttle/shuttle.{part}.xz"), **options) for part in ("trn", "tst")]
    frame = pd.concat(parts, ignore_index=True)
    return frame, frame.pop(9)


def _heart() -> tuple[pd.DataFrame, Any]:
    """UCI's processed Cleveland file; "?" is a missing cell."""
    path = "heart/processed.cleveland.data.xz"
    frame = pd.read_csv(_file(path), header=None, names=HEART, na_values="?")
    return frame, frame.pop("disease") > 0


def _svmlight(columns: int, *paths: str) -> Callable[[], tuple[pd.DataFrame, Any]]:
    def read() -> tuple[pd.DataFrame, Any]:
        parts = []
        for path in paths:
            with _file(path) as file:
                X, y = load_svmlight_file(file, n_features=columns)
            parts.append((X.toarray(), y > 0))
        names = [f"x{number}" for number in range(1, columns + 1)]
        frame = pd.DataFrame(np.vstack([X for X, _ in parts]), columns=names)
        return frame, np.concatenate([y for _, y in parts])

    return read


def _bank(rows: int = 30_000, seed: int = 20_08) -> tuple[pd.DataFrame, Any]:
    """Customers of a bank that are called about a deposit, generated: people, money, past calls.

    Made to have what such tables have: heavy tails (balance, duration), a number that means
    "never" (days since the last call, −1 for four in five), counts with few values, categories of
    unequal size, missing cells, columns that say nothing, and a rare positive class (one in
    eight). The log-odds are a sum of smooth curves, steps, effects of categories and products of
    pairs, and a third of their variance is noise that no column tells.
    """
    generator = np.random.default_rng(seed)
    age = np.clip(generator.gamma(9, 4.6, rows), 18, 95).round()
    jobs = np.array(
        [
            "management",
            "technician",
            "services",
            "worker",
            "office",
            "retired",
            "student",
            "self",
            "none",
            "other",
        ]
    )
    job = generator.choice(jobs, rows, p=[0.2, 0.17, 0.1, 0.21, 0.11, 0.06, 0.03, 0.04, 0.04, 0.04])
    job = np.where((age > 63) & (generator.random(rows) < 0.8), "retired", job)
    marital = generator.choice(
        np.array(["married", "single", "divorced"]), rows, p=[0.6, 0.28, 0.12]
    )
    education = generator.choice(np.array(["first", "second", "third"]), rows, p=[0.15, 0.53, 0.32])
    balance = np.round(generator.standard_t(2.2, rows) * 900 + 900 + 18 * (age - 40))
    housing = (generator.random(rows) < 0.65 - 0.006 * (age - 40)).astype(float)
    loan = (generator.random(rows) < 0.16).astype(float)
    months = np.array(
        [
            "jan",
            "feb",
            "mar",
            "apr",
            "may",
            "jun",
            "jul",
            "aug",
            "sep",
            "oct",
            "nov",
            "dec",
        ]
    )
    shares = np.array([3, 6, 1, 7, 30, 12, 15, 14, 1.3, 1.7, 8.5, 0.5])
    month = generator.choice(months, rows, p=shares / shares.sum())
    day = generator.integers(1, 32, rows).astype(float)
    duration = np.round(generator.lognormal(5.2, 0.9, rows))
    campaign = generator.geometric(0.37, rows).astype(float)
    called = generator.random(rows) < 0.19
    since = np.where(called, np.round(generator.gamma(4, 55, rows)), -1.0)
    previous = np.where(called, generator.geometric(0.35, rows), 0).astype(float)
    outcome = np.where(
        called,
        generator.choice(np.array(["failure", "success", "other"]), rows, p=[0.6, 0.18, 0.22]),
        "never",
    )
    contact = generator.choice(np.array(["cell", "line"]), rows, p=[0.75, 0.25]).astype(object)
    contact[generator.random(rows) < 0.25] = None
    branch = generator.normal(size=rows)

    length = np.log1p(duration)
    season = pd.Series(month).map(
        dict(
            zip(months, [0, 0, 1.6, 0.3, -0.5, -0.2, -0.4, -0.2, 1.3, 1.4, -0.5, 1.5], strict=True)
        )
    )
    effects = (
        2.2 * np.tanh(1.4 * (length - 5.8))
        + 0.9 * (duration > 600) * (campaign < 3)
        + season.to_numpy()
        + 2.0 * (outcome == "success")
        + 0.5 * (outcome == "success") * (since < 120)
        - 0.6 * housing
        - 0.4 * loan * (balance < 500)
        + 0.25 * np.arcsinh((balance - 500) / 800)
        + 0.9 * np.square((age - 42) / 22)
        - 0.12 * np.minimum(campaign, 8)
        + 0.4 * (job == "student")
        + 0.35 * (education == "third") * (length > 5.4)
        - 0.5 * pd.isna(contact)
        + 0.2 * (marital == "single") * (age < 35)
    )
    noise = generator.normal(scale=np.sqrt(effects.var() / 2), size=rows)
    log_odds = effects + noise
    frame = pd.DataFrame(
        {
            "age": age,
            "job": job,
            "marital": marital,
            "education": education,
            "balance": balance,
            "housing": housing,
            "loan": loan,
            "contact": contact,
            "day": day,
            "month": month,
            "duration": duration,
            "campaign": campaign,
            "since": since,
            "previous": previous,
            "outcome": outcome,
            "branch": branch,
        }
    )
    frame.loc[generator.random(rows) < 0.04, "education"] = None
    frame.loc[generator.random(rows) < 0.03, "balance"] = np.nan
    return frame, log_odds > np.quantile(log_odds, 7 / 8)


def _bundled(function: Callable[..., Any], **options: Any) -> Callable[[], tuple[Any, Any]]:
    def read() -> tuple[pd.DataFrame, Any]:
        try:
            found = function(**options)
        except OSError:
            raise Absent(f"scikit-learn has not fetched {function.__name__}") from None
        return pd.DataFrame(found.data, columns=list(found.feature_names)), found.target

    return read


def _friedman() -> tuple[pd.DataFrame, Any]:
    """Friedman's first: five columns matter, five do not; noise of deviation 1."""
    X, y = make_friedman1(n_samples=8_000, noise=1.0, random_state=0)
    return pd.DataFrame(X, columns=[f"x{number}" for number in range(1, 11)]), y


TABLES: dict[str, Callable[[], tuple[pd.DataFrame, Any]]] = {
    "adult": _adult,
    "default-credit": _default_credit,
    "give-me-some-credit": _give_me_some_credit,
    "bank": _bank,
    "phishing": _svmlight(68, "phishing/phishing.xz"),
    "ijcnn1": _svmlight(22, "ijcnn1/ijcnn1.xz"),
    "cod-rna": _svmlight(8, "cod-rna/cod-rna.xz"),
    "shuttle": _shuttle,
    "susy-30k": _susy,
    "w8a": _svmlight(300, "w8a/w8a.xz"),
    "a9a": _svmlight(123, "a9a/a9a.xz", "a9a/a9a.t.xz"),
    "breast-cancer": _bundled(load_breast_cancer),
    "heart": _heart,
    "diabetes": _bundled(load_diabetes),
    "friedman1": _friedman,
    "california": _bundled(fetch_california_housing, download_if_missing=False),
}
REGRESSIONS = ("diabetes", "friedman1", "california")
