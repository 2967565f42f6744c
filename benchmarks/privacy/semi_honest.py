"""Attacks of a label party that follows the program: on distances, on rounds, on many equal jobs.

Each function takes what the label party received in real runs, attacks it, and is judged by the
truth. Where an option still gives the old behaviour, that run is the one before.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.sparse.csgraph import shortest_path
from sklearn.decomposition import FastICA

from benchmarks import datasets
from benchmarks.privacy.recording import sums_received, values_opened
from vertikal import ADMMClassifier, FDSKLClassifier, Privacy, Values
from vertikal.algorithms.admm.sharing import CONTRIBUTIONS, FRACTION
from vertikal.demo.credit import credit_population
from vertikal.errors import InputError
from vertikal.kernels.bandwidth import sample_pairs
from vertikal.node.config.party_file import Policy
from vertikal.privacy.attacks.score import matched_correlations
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]

PEOPLE, HIDDEN, KNOWN = 144, 9, 10
"""The attack on distances: common people, hidden columns, and people that the attacker knows."""
ROUNDS_PEOPLE, ROUNDS_HIDDEN, ROUNDS_KNOWN, ROUNDS = 500, 6, 15, 42
"""The same for the rounds of ADMM, of which one column is asked for."""
JOBS = (1, 2, 3, 5, 8, 12, 20)
JOBS_PEOPLE, JOBS_KNOWN = 1000, 60
_STEPS = 200
_CLOSE = 1e-6


@dataclass(frozen=True)
class Hidden:
    """Columns of the lender, who attacks, and of the others, who are attacked."""

    X: Array
    y: Array
    parties: dict[str, list[int]]

    @property
    def own(self) -> Array:
        return self.X[:, self.parties["lender"]]

    @property
    def others(self) -> Array:
        return np.delete(self.X, self.parties["lender"], axis=1)


def credit(rows: int, hidden: int) -> Hidden:
    """The people of the tutorial: all columns of the lender, the first ``hidden`` of the others."""
    people = credit_population(rows, 0)
    own = people.numbers()["lender"]
    others = [*people.numbers()["bank"], *people.numbers()["shop"]][:hidden]
    X = people.X[:, [*own, *others]]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    half = len(own) + hidden // 2
    parties = {
        "lender": list(range(len(own))),
        "bank": list(range(len(own), half)),
        "shop": list(range(half, X.shape[1])),
    }
    return Hidden(X, people.y, parties)


def yes_or_no(name: str) -> Hidden:
    """Columns of zeros and ones: "generated" ones, or a9a's that are not rare."""
    if name == "generated":
        generator = np.random.default_rng(0)
        X = 1.0 * (generator.uniform(size=(JOBS_PEOPLE, 16)) < np.linspace(0.1, 0.5, 16))
        X = X[:, generator.permutation(16)]
        noise = 0.5 * generator.normal(size=JOBS_PEOPLE)
        y = np.asarray(X @ generator.normal(size=16) + noise > 0.5, np.int64)
    else:
        split = datasets.a9a().head(JOBS_PEOPLE)
        X, y = split.X[:, np.abs(split.X.mean(axis=0) - 0.5) < 0.45], split.y
    parts = np.array_split(np.arange(X.shape[1]), [X.shape[1] // 4, X.shape[1] * 5 // 8])
    names = ("lender", "bank", "shop")
    return Hidden(X, y, {name: part.tolist() for name, part in zip(names, parts, strict=True)})


def distances_to_columns() -> dict[str, Any]:
    """Distances of 2,000 pairs → all distances → columns, with a few people known."""
    data = credit(PEOPLE, HIDDEN)
    with sums_received() as sums:
        model = FDSKLClassifier(data.parties, bandwidth="median", n_components=256, random_state=0)
        model.fit(data.X, data.y)
    (distances,) = [Ring(64).decode_wide(total) for name, total in sums if name == "distances"]
    pairs = sample_pairs(PEOPLE, model.settings_.seed)
    first, second = pairs.T
    left = distances - np.square(data.own[first] - data.own[second]).sum(axis=1)
    places = complete_distances(left, pairs, PEOPLE, HIDDEN)
    before = _columns_of_known(places, data.others)
    with sums_received() as sums:
        FDSKLClassifier(data.parties, disclosure="values", n_components=256).fit(data.X, data.y)
    numbers = sum(total.size for name, total in sums if name == "distances")
    try:
        FDSKLClassifier(data.parties, disclosure="values", bandwidth="median").fit(data.X, data.y)
        refused = False
    except InputError:
        refused = True
    return {
        "before: distances opened": len(pairs),
        "before: largest error of a cell, deviations": before,
        "before: columns recovered": HIDDEN if before < _CLOSE else 0,
        "after: distances opened": numbers,
        "after: median refused with values": refused,
    }


def complete_distances(squared: Array, pairs: Array, rows: int, columns: int) -> Array:
    """Find places (rows, columns) with these squared distances of pairs, up to a rotation.

    Shortest paths give a first guess of all distances; damped Gauss-Newton steps do the rest.
    """
    first, second = pairs.T
    lengths = np.sqrt(np.maximum(squared, 1e-12))
    graph = sparse.csr_matrix((lengths, (first, second)), (rows, rows))
    paths = shortest_path(graph, directed=False)
    centre = np.eye(rows) - 1 / rows
    sizes, axes = np.linalg.eigh(-centre @ np.square(paths) @ centre / 2)
    places = axes[:, -columns:] * np.sqrt(np.maximum(sizes[-columns:], 1e-9))
    number = np.repeat(np.arange(len(pairs)), columns)
    where = [(one[:, None] * columns + np.arange(columns)).ravel() for one in (first, second)]
    damping = 1.0

    def misfit(at: Array) -> Array:
        return np.square(at[first] - at[second]).sum(axis=1) - squared

    left = misfit(places)
    for _ in range(_STEPS):
        slopes = 2 * (places[first] - places[second]).ravel()
        entries = np.concatenate((slopes, -slopes)), (np.tile(number, 2), np.concatenate(where))
        jacobian = sparse.csr_matrix(entries, (len(pairs), rows * columns))
        normal, right = (jacobian.T @ jacobian).toarray(), jacobian.T @ left
        while damping < 1e12:
            matrix = normal + damping * np.eye(len(normal))
            step = linalg.solve(matrix, right, assume_a="pos").reshape(rows, columns)
            ahead = misfit(places - step)
            if ahead @ ahead < left @ left:
                break
            damping *= 4
        else:
            break
        # Rotations of all places change nothing: without damping the system would be singular.
        places, left, damping = places - step, ahead, max(damping / 4, 1e-6)
        if left @ left < 1e-22 * (squared @ squared):
            break
    return np.asarray(places)


def _columns_of_known(places: Array, truth: Array) -> float:
    """Largest error of a cell of people who are not known, by an affine map of those who are."""
    design = np.column_stack((places, np.ones(len(places))))
    found = design @ np.linalg.lstsq(design[:KNOWN], truth[:KNOWN], rcond=None)[0]
    return float(np.abs(found - truth)[KNOWN:].max())


def rounds_to_column() -> dict[str, Any]:
    """Joint predictions of 42 rounds of ADMM → a column of all, where 15 people are known."""
    data = credit(ROUNDS_PEOPLE, ROUNDS_HIDDEN)
    X = data.X / np.linalg.norm(data.X, axis=1, keepdims=True)
    data = Hidden(X, data.y, data.parties)
    return {
        "before: correlation of the column found": _admm(data, tol=1e-9),
        "after: allowed by the default policy without noise": "rounds" in Policy().disclosures,
        "after: correlation with epsilon 5": _admm(data, privacy=Privacy(epsilon=5.0, delta=1e-4)),
    }


def _admm(data: Hidden, **settings: Any) -> float:
    with warnings.catch_warnings(), sums_received() as sums:
        warnings.simplefilter("ignore")  # of rounds that end early, and of what noise costs
        ADMMClassifier(data.parties, max_iter=ROUNDS, random_state=0, **settings).fit(
            data.X, data.y
        )
    rounds = [
        Ring(64).decode_reals(total, FRACTION).ravel()[: len(data.X)]
        for name, total in sums
        if name == CONTRIBUTIONS.name
    ]
    whole = np.column_stack((*rounds, data.own, np.ones(len(data.X))))
    rank = data.X.shape[1] + 1
    axes = np.linalg.svd(whole, full_matrices=False)[0][:, :rank]
    known, column = slice(0, ROUNDS_KNOWN), data.others[:, 0]
    found = axes @ np.linalg.lstsq(axes[known], column[known], rcond=None)[0]
    return _correlation(found[ROUNDS_KNOWN:], column[ROUNDS_KNOWN:])


def equal_jobs(data: Hidden) -> list[dict[str, float]]:
    """Values of 1 to 20 equal jobs together → yes-or-no columns of the others.

    Once with people known, by ridge regression, and once without, by independent components; each
    with the setting that served best, which an attacker finds by trying. Each job draws directions
    and noise of its own.
    """
    opened: list[Array] = []
    found = []
    for job in range(1, max(JOBS) + 1):
        with values_opened() as values:
            # Other directions in every job; noise is never the same.
            model = FDSKLClassifier(data.parties, disclosure="values", random_state=job)
            model.fit(data.X, data.y)
        opened.append(np.concatenate(values, axis=1))
        if job in JOBS:
            found.append({"jobs": job} | recovered(np.concatenate(opened, axis=1), data))
    return found


def recovered(numbers: Array, data: Hidden) -> dict[str, float]:
    """Mean correlation of hidden columns that numbers about each row (rows, numbers) give."""
    return {
        "numbers per row": numbers.shape[1],
        "bits per row": Values().value_bits * numbers.shape[1],
        f"correlation, {JOBS_KNOWN} people known": round(_regressed(numbers, data), 3),
        "correlation, nobody known": round(_separated(numbers, data), 3),
    }


def own_columns_alone(data: Hidden) -> float:
    """Mean correlation that own columns and 60 known people give without any job."""
    return round(_regressed(np.empty((len(data.X), 0)), data), 3)


def _regressed(numbers: Array, data: Hidden) -> float:
    features = _standardised(np.column_stack((numbers, data.own)))
    kernel = features @ features.T / features.shape[1]
    known, truth = slice(0, JOBS_KNOWN), data.others
    gap = truth[known] - truth[known].mean(axis=0)
    best = 0.0
    for ridge in (0.01, 0.1, 1.0, 10.0):
        weights = np.linalg.solve(kernel[known, known] + ridge * np.eye(JOBS_KNOWN), gap)
        told = kernel[JOBS_KNOWN:, known] @ weights
        each = [
            abs(_correlation(told[:, column], truth[JOBS_KNOWN:, column]))
            for column in range(truth.shape[1])
        ]
        best = max(best, float(np.mean(each)))
    return best


def _separated(numbers: Array, data: Hidden) -> float:
    own = data.own - data.own.mean(axis=0)
    centred = _standardised(numbers)
    centred -= own @ np.linalg.lstsq(own, centred, rcond=None)[0]
    axes = np.linalg.svd(centred, full_matrices=False)[0] * np.sqrt(len(numbers))
    hidden, best = data.others.shape[1], 0.0
    for rank in (hidden, data.X.shape[1], 2 * hidden):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # components that have not settled can still match
            sources = FastICA(whiten=False, random_state=0).fit_transform(axes[:, :rank])
        best = max(best, float(matched_correlations(sources, data.others).mean()))
    return best


def _standardised(columns: Array) -> Array:
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    return np.asarray(centred[:, spread > 0] / spread[spread > 0])


def _correlation(found: Array, truth: Array) -> float:
    if found.std() == 0 or truth.std() == 0:
        return 0.0
    return float(np.corrcoef(found, truth)[0, 1])
