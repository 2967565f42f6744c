"""Cosine and sine of every phase against as many and twice as many cosines; harmonics of phases.

    python -m benchmarks.accuracy.pairs

a9a and ijcnn1, whole, 4 parties; AUC on the rows of their test files, means over seeds. Bytes are
those of phases, and with `values` of all that is sent once per row and direction.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from benchmarks import datasets
from benchmarks.accuracy.figures import bandwidth, scores
from benchmarks.datasets import Split
from benchmarks.harness import Benchmark, arguments
from vertikal import FDSKLClassifier, Fourier

PARTIES = 4
SEEDS = (0, 1, 2)
GAMMA = {"a9a": 0.02, "ijcnn1": 1.0}
WIDER = 4
"""Phases are made at so many times the bandwidth, of which harmonics are the narrower ones."""
HARMONICS = (1, 2, 3, 4)
BITS: tuple[Literal[8, 16], ...] = (8, 16)
ONCE = ("phases", "phase shares", "correlation", "opening", "difference")


def fitted(split: Split, seeds: tuple[int, ...], **settings: Any) -> tuple[float, float]:
    """Return the AUC, a mean over seeds, and the bytes sent once for each training row."""
    aucs = []
    sent = 0
    for seed in seeds:
        given = {"bandwidth": bandwidth(GAMMA[split.name]), "random_state": seed} | settings
        model = FDSKLClassifier(PARTIES, **given).fit(split.X, split.y)
        aucs.append(scores(model, split)[1])
        entries = model.ledger_.entries()
        sent = sum(entry.bytes for entry in entries if entry.disclosure.name in ONCE)
    return round(float(np.mean(aucs)), 5), round(sent / len(split.y), 1)


def main() -> None:
    options = arguments(__doc__ or "", directions=512)
    D, pair = options.directions, Fourier(functions="pair")
    run = Benchmark("accuracy-pairs", {"parties": PARTIES, "D": D, "seeds": SEEDS, "gamma": GAMMA})
    for split in (datasets.a9a(), datasets.ijcnn1()):
        name = split.name
        title = "AUC, bytes per row"
        few = run.figure(f"{name}, {D} cosines: {title}", fitted(split, SEEDS, n_components=D))
        many = run.figure(
            f"{name}, {2 * D} cosines: {title}", fitted(split, SEEDS, n_components=2 * D)
        )
        both = run.figure(
            f"{name}, {D} pairs: {title}", fitted(split, SEEDS, n_components=D, feature_map=pair)
        )
        gained = (both[0] - few[0]) / (many[0] - few[0])
        run.target(f"{name}: share of what doubling gains", gained, 0.5, at_most=False)
        run.target(
            f"{name}: bytes over those of {2 * D} cosines", both[1] / many[1], 0.51, at_most=True
        )
        wide = WIDER * bandwidth(GAMMA[name])
        for h in HARMONICS:
            drawn = {"n_components": D, "bandwidth": wide / h, "feature_map": pair}
            exact = run.figure(
                f"{name}, bandwidth × {WIDER / h:.3g}: AUC", fitted(split, (0,), **drawn)[0]
            )
            for bits in BITS:
                multiple = Fourier(functions="pair", harmonics=(h,), bits=bits)
                auc = fitted(split, (0,), n_components=D, bandwidth=wide, feature_map=multiple)[0]
                run.figure(f"{name}, the same by {bits}-bit phases × {h}: AUC", auc)
                run.target(
                    f"{name}, {bits} bits, harmonic {h}: AUC below its own phases'",
                    exact - auc,
                    0.001,
                    at_most=True,
                )
        for harmonics in ((2, 4), HARMONICS):
            several = Fourier(functions="pair", harmonics=harmonics)
            auc = fitted(split, (0,), n_components=D // 2, bandwidth=wide, feature_map=several)[0]
            run.figure(f"{name}, {D // 2} phases, harmonics {harmonics} together: AUC", auc)
    split = datasets.a9a()
    hidden: dict[str, Any] = {"disclosure": "values"}
    opened = run.figures[f"a9a, {D} pairs: AUC, bytes per row"][0]
    both = run.figure(
        f"a9a, values, {D} pairs: AUC, bytes per row",
        fitted(split, (0,), n_components=D, feature_map=pair, **hidden),
    )
    many = run.figure(
        f"a9a, values, {2 * D} cosines: AUC, bytes per row",
        fitted(split, (0,), n_components=2 * D, **hidden),
    )
    run.target("a9a, values: AUC below the open level's", opened - both[0], 0.001, at_most=True)
    run.target("a9a, values: bytes over those of cosines", both[1] / many[1], 0.66, at_most=True)
    run.write(options.out)


if __name__ == "__main__":
    main()
