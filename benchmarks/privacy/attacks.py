"""Attacks of a label party on the others' columns and rows, at every disclosure level.

    python -m benchmarks.privacy.attacks

Four parties; the label party holds the first columns and attacks the others'. What it holds:

- open, shared or private directions: the phases;
- values: all values that the exact solver opened, with and without what its own columns explain
  (the better of the two counts);
- sealed: the masked features that it keeps, read as numbers.

The attacks: a linear system (directions known: shared ones), blind source separation, yes-or-no
columns in the column space, and nearest-row matching with 500 people known to the attacker and a
list of 1,500 records; equal records count as right. Chance is what a random match scores.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments
from benchmarks.privacy.recording import numbers_held, phases_held, values_opened
from vertikal import FDSKLClassifier
from vertikal.algorithms.kernel_machine.directions import draw_directions
from vertikal.privacy.attacks.binary_columns import binary_columns
from vertikal.privacy.attacks.linear_system import all_against, recover_differences
from vertikal.privacy.attacks.nearest_rows import nearest_rows, right_matches
from vertikal.privacy.attacks.opened_values import separate_values
from vertikal.privacy.attacks.score import score
from vertikal.privacy.attacks.source_separation import Separated, separate

Array = npt.NDArray[Any]

PARTIES = 4
D = 1024
LISTED, KNOWN = 1500, 500
SOLVED = 300
"""Rows whose differences to the first one the linear system is solved for."""
MASKED = 64
"""Columns of masked features that are attacked; all are alike."""


@dataclass(frozen=True)
class Target:
    """One data set and who holds what of it."""

    name: str
    X: Array
    y: Array
    parties: dict[str, list[int]]
    settings: dict[str, Any]

    @property
    def own(self) -> Array:
        return self.X[:, self.parties["party0"]]

    @property
    def hidden(self) -> Array:
        return np.delete(self.X, self.parties["party0"], axis=1)

    def model(self, **settings: Any) -> FDSKLClassifier:
        given = {"n_components": D, "random_state": 0} | self.settings | settings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # shared directions draw one; here they are the point
            return FDSKLClassifier(self.parties, **given).fit(self.X, self.y)


def main() -> None:
    options = arguments(__doc__ or "", rows=40_000)
    run = Benchmark(
        "privacy-attacks",
        {"parties": PARTIES, "D": D, "rows": options.rows, "listed": LISTED, "known": KNOWN},
    )
    for load in (datasets.a9a, datasets.phishing, datasets.default_credit):
        target = target_of(load().head(options.rows))
        run.figure(f"{target.name}: rows and hidden columns", list(target.hidden.shape))
        run.figure(f"{target.name}: rows matched by chance", chance(target))
        for directions in ("shared", "private"):
            attack_open(run, target, directions)
        attack_values(run, target)
        attack_sealed(run, target)
    run.write(options.out)


def target_of(split: datasets.Split, parties: int = PARTIES) -> Target:
    X = split.X[:, split.X.std(axis=0) > 0]
    parts = np.array_split(np.arange(X.shape[1]), parties)
    parties = {f"party{i}": part.tolist() for i, part in enumerate(parts)}
    if split.name == "a9a":
        settings: dict[str, Any] = {"bandwidth": 5.0}
    else:
        settings = {"scale": "standard", "bandwidth": "mean"}
    return Target(split.name, X, split.y, parties, settings)


def attack_open(run: Benchmark, target: Target, directions: str) -> None:
    with phases_held() as held:
        model = target.model(feature_map={"name": "fourier", "directions": directions})
    phases, own, ring = held[0]
    level = f"{target.name}, open, {directions} directions"
    if directions == "shared":
        others = [
            draw_directions(model.shards_[name], "party0") for name in list(target.parties)[1:]
        ]
        known = np.concatenate([part.directions for part in others])
        rows = slice(0, SOLVED)
        found = recover_differences(
            phases[rows],
            own[rows],
            known,
            ring,
            all_against(0, SOLVED),
            hidden_parties=PARTIES - 1,
        )
        truth = target.hidden[1:SOLVED] - target.hidden[0]
        varying = truth.std(axis=0) > 0
        tell_columns(
            run, f"{level}: linear system", found.differences[:, varying], truth[:, varying]
        )
    columns = target.hidden.shape[1]  # the attacker is told how many there are
    separated = separate(phases, own, ring, hidden_parties=PARTIES - 1, most=columns)
    tell(run, target, level, [separated], separated.scores)


def attack_values(run: Benchmark, target: Target) -> None:
    with values_opened() as values:
        target.model(disclosure="values")
    attack_opened(run, target, "values", values)


def attack_opened(run: Benchmark, target: Target, level: str, values: list[Array]) -> None:
    """Attack all values that a solver opened."""
    passes = np.concatenate(values, axis=1)
    run.figure(f"{target.name}, {level}: numbers opened per row", passes.shape[1])
    attempts = [separate_values(passes), separate_values(passes, target.own)]
    best = tell(run, target, f"{target.name}, {level}", attempts, passes)
    run.target(f"{target.name}, {level}: columns above 0.99", best["columns"], 0, at_most=True)


def attack_sealed(run: Benchmark, target: Target) -> None:
    with numbers_held() as held:
        target.model(disclosure="sealed", loss="square")
    kept = held[0]
    columns = kept.product("forward", np.eye(kept.shape[1], MASKED, dtype=kept.dtype))
    attack_masked(run, target, "sealed", columns.view(np.int64) * 2.0**-63)


def attack_masked(run: Benchmark, target: Target, level: str, numbers: Array) -> None:
    """Attack masked features that are kept, read as numbers."""
    best = tell(run, target, f"{target.name}, {level}", [separate_values(numbers)], numbers)
    run.target(f"{target.name}, {level}: columns above 0.9", best["close"], 0, at_most=True)
    limit = chance(target) + 3 * np.sqrt(max(chance(target), 1e-3) / (LISTED - KNOWN))
    run.target(f"{target.name}, {level}: rows matched", best["rows"], float(limit), at_most=True)


def tell(
    run: Benchmark, target: Target, level: str, attempts: list[Separated], held: Array
) -> dict[str, float]:
    """Print and keep what each attack recovers; the best of them all."""
    truth = target.hidden
    found = [score(separated.components, truth) for separated in attempts]
    by_space = [
        score(binary_columns(separated.scores, separated.components), truth)
        for separated in attempts
    ]
    for name, scores in (("source separation", found), ("binary columns", by_space)):
        best = max(scores, key=lambda one: (one.almost_exact, one.close))
        run.figure(
            f"{level}: {name}",
            {
                "above 0.99": best.almost_exact,
                "above 0.9": best.close,
                "rows right in the former": round(best.rows, 4),
            },
        )
    rows = matched(target, held)
    run.figure(f"{level}: rows matched", round(rows, 4))
    return {
        "columns": max(one.almost_exact for one in (*found, *by_space)),
        "close": max(one.close for one in (*found, *by_space)),
        "rows": rows,
    }


def tell_columns(run: Benchmark, name: str, components: Array, truth: Array) -> None:
    found = score(components, truth)
    run.figure(
        name,
        {"of columns": found.columns, "above 0.99": found.almost_exact, "above 0.9": found.close},
    )


def matched(target: Target, held: Array) -> float:
    """The share of rows, of those not known, that are matched with a record like their own."""
    order = np.random.default_rng(1).permutation(LISTED)
    records = target.hidden[:LISTED][order]
    place = np.argsort(order)  # row i is candidate place[i]
    known = np.arange(KNOWN)
    matches = nearest_rows(held[:LISTED], records, known, place[:KNOWN])
    return right_matches(matches[KNOWN:], records, place[KNOWN:])


def chance(target: Target) -> float:
    """Score the match of every row with a random record."""
    _, counts = np.unique(target.hidden[:LISTED], axis=0, return_counts=True)
    return float(np.square(counts / LISTED).sum())


if __name__ == "__main__":
    main()
