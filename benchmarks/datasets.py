"""The real data sets that the benchmarks read, from the folder named by VERTIKAL_DATA.

Nothing here is shipped: a benchmark whose data set is absent says so and stops. Fashion-MNIST may
also come from Debian's package.
"""

from __future__ import annotations

import gzip
import lzma
import math
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split

Array = npt.NDArray[Any]

FOLDER = Path(
    os.environ.get("VERTIKAL_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data")
)

FASHION = Path("/usr/share/datasets/fashion-mnist")
"""The folder of Debian's package dataset-fashion-mnist."""


@dataclass(frozen=True)
class Split:
    """A data set cut into training and test rows, labels −1 and +1; columns dense, or sparse."""

    name: str
    X: Any
    y: Array
    X_test: Any
    y_test: Array

    def head(self, rows: int) -> Split:
        """The same with the first ``rows`` training rows only."""
        return Split(self.name, self.X[:rows], self.y[:rows], self.X_test, self.y_test)


def a9a() -> Split:
    """Its own test file."""
    return _with_test_file("a9a", "a9a/a9a.xz", "a9a/a9a.t.xz", 123)


def ijcnn1() -> Split:
    """Its own test file."""
    return _with_test_file("ijcnn1", "ijcnn1/ijcnn1.xz", "ijcnn1/ijcnn1.t.xz", 22)


def gisette() -> Split:
    """Its own test file; LIBSVM's files, compressed with xz."""
    return _with_test_file(
        "gisette", "gisette/gisette_scale.xz", "gisette/gisette_scale.t.xz", 5000
    )


def cod_rna(seed: int = 0) -> Split:
    """3:1, by a seeded draw; columns divided by their largest magnitude in the training part."""
    split = _cut("cod-rna", *_svmlight("cod-rna/cod-rna.xz", 8), seed)
    largest = np.abs(split.X).max(axis=0)
    return Split(split.name, split.X / largest, split.y, split.X_test / largest, split.y_test)


def phishing(seed: int = 0) -> Split:
    """3:1, by a seeded draw."""
    return _cut("phishing", *_svmlight("phishing/phishing.xz", 68), seed)


def default_credit(seed: int = 0) -> Split:
    """3:1, by a seeded draw."""
    with lzma.open(data_file("default-credit/UCI_Credit_Card.csv.xz")) as file:
        frame = pd.read_csv(file)
    y = np.where(frame.pop("default.payment.next.month") > 0, 1.0, -1.0)
    return _cut("default-credit", frame.drop(columns="ID").to_numpy(float), y, seed)


def sector(label: int) -> Split:
    """One class against the rest, sparse; its own test file."""
    parts: list[Any] = []
    for path in ("sector/sector.scale.xz", "sector/sector.t.scale.xz"):
        with lzma.open(data_file(path)) as file:
            X, labels = load_svmlight_file(file, n_features=55197)
        parts += [X, np.where(labels == label, 1.0, -1.0)]
    return Split("sector", *parts)


def fashion_mnist(positive: int, negative: int) -> Split:
    """One class of pictures against another; its own test file."""
    parts: list[Array] = []
    for part in ("train", "t10k"):
        pixels, labels = pictures(part)
        kept = (labels == positive) | (labels == negative)
        parts += [pixels[kept], np.where(labels[kept] == positive, 1.0, -1.0)]
    return Split("fashion", *parts)


def pictures(part: str) -> tuple[Array, Array]:
    """All of Fashion-MNIST's ``"train"`` or ``"t10k"``: 784 pixels from 0 to 1; labels 0 to 9."""
    count = {"train": 60_000, "t10k": 10_000}[part]
    pixels = _idx(f"{part}-images-idx3-ubyte.gz", count, 28, 28)
    return pixels.reshape(count, -1) / 255, _idx(f"{part}-labels-idx1-ubyte.gz", count)


def _idx(name: str, *shape: int) -> Array:
    """An array of bytes in the idx format: 0, 0, 8 (for bytes), the number of axes, their sizes."""
    file = FOLDER / "fashion-mnist" / name
    file = file if file.exists() else FASHION / name
    if not file.exists():
        raise SystemExit(
            f"{name} is neither in fashion-mnist of the data folder nor in {FASHION}; "
            "install Debian's dataset-fashion-mnist, or set VERTIKAL_DATA to where it lies"
        )
    try:
        content = gzip.decompress(file.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise SystemExit(f"{file} is not a whole gzip file ({error}); fetch it again") from error
    head = bytes((0, 0, 8, len(shape))) + np.array(shape, ">u4").tobytes()
    if not content.startswith(head) or len(content) != len(head) + math.prod(shape):
        raise SystemExit(f"{file} is not an idx file of {shape} bytes; fetch it again")
    return np.frombuffer(content, np.uint8, offset=len(head)).reshape(shape)


def movielens(name: str) -> tuple[Array, int, int]:
    """(user, item) pairs of MovieLens 100k or 1M, and how many of each there are."""
    if name == "100k":
        with lzma.open(data_file("movielens-100k/u.data.xz")) as file:
            frame = pd.read_csv(file, sep="\t", header=None, names=["user", "item", "r", "t"])
    else:
        with lzma.open(data_file("movielens-1m/ratings.csv.xz")) as file:
            frame = pd.read_csv(file).rename(columns={"movie": "item"})
    users, items = (pd.factorize(frame[column], sort=True)[0] for column in ("user", "item"))
    return np.stack((users, items), axis=1), users.max() + 1, items.max() + 1


def movielens_100k_times() -> tuple[Array, Array]:
    """Stars and times of the ratings of MovieLens 100k, in the order of `movielens`."""
    with lzma.open(data_file("movielens-100k/u.data.xz")) as file:
        frame = pd.read_csv(file, sep="\t", header=None, names=["user", "item", "r", "t"])
    return frame["r"].to_numpy(), frame["t"].to_numpy()


def is_here(path: str) -> bool:
    """Return True if a file is in the data folder, or Debian's package has it."""
    return (FOLDER / path).exists() or (FASHION / Path(path).name).exists()


def _with_test_file(name: str, train: str, test: str, columns: int) -> Split:
    return Split(name, *_svmlight(train, columns), *_svmlight(test, columns))


def _cut(name: str, X: Array, y: Array, seed: int) -> Split:
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    return Split(name, X, y, X_test, y_test)


def _svmlight(path: str, columns: int) -> tuple[Array, Array]:
    with lzma.open(data_file(path)) as file:
        X, y = load_svmlight_file(file, n_features=columns)
    return X.toarray(), np.where(y > 0, 1.0, -1.0)


def data_file(path: str) -> Path:
    """A file of the data folder; the benchmark ends where it is absent."""
    file = FOLDER / path
    if not file.exists():
        raise SystemExit(f"{path} is not in the data folder; set VERTIKAL_DATA to where it lies")
    return file
