"""a9a, D = 1024: what hiding the phases costs, with 4 parties and a dealer or between two alone.

    python -m benchmarks.privacy.cost [--parties 2]

Times are held against the open fit of the same run. Memory is what each role keeps for the
products; the peak of the process holds that of all four parties at once. With ``--parties 2`` two
parties are measured, without a dealer and with one: processor seconds of all roles together, and
all bytes that were sent.
"""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np

from benchmarks import datasets
from benchmarks.accuracy.figures import bandwidth, scores
from benchmarks.harness import Benchmark, alternating, arguments, median
from vertikal import FDSKLClassifier, Values

PARTIES = 4
D = 1024
STEPS = 75
"""Of a sealed fit: enough for an AUC within 0.005 of the ridge's (`same_model`)."""
MOST_TIMES = {"values, 32 bits": 3.5, "values, 64 bits": 6, "sealed": 18}
MOST_BYTES = {32: 18, 64: 28}


MOST_SECONDS, MOST_MEGABYTES, AUC_GAP = 30, 600, 0.001
"""Goals of two parties without a dealer."""


def main() -> None:
    options = arguments(__doc__ or "", repeats=5, parties=PARTIES)
    if options.parties == 2:
        between_two(options.repeats, options.out)
        return
    run = Benchmark(
        "privacy-cost",
        {"parties": PARTIES, "D": D, "sealed steps": STEPS, "repeats": options.repeats},
    )
    split = datasets.a9a()
    models = {
        "open": model_of(),
        "values, 32 bits": model_of(disclosure="values"),
        "values, 64 bits": model_of(disclosure=Values(bits=64)),
        "sealed": model_of(disclosure="sealed", loss="square", max_iter=STEPS),
    }
    warm = np.random.default_rng(0).normal(size=(3000, split.X.shape[1]))
    for model in models.values():  # compile and warm up
        model.fit(warm, split.y[:3000])
    times = alternating(
        {
            name: lambda model=model: model.fit(split.X, split.y)  # type: ignore[misc]
            for name, model in models.items()
        },
        options.repeats,
        warm=True,
    )
    took = {name: median(values) for name, values in times.items()}
    cells = len(split.y) * D
    for name, model in models.items():
        run.figure(f"{name}: seconds, all repeats", [round(t, 3) for t in sorted(times[name])])
        run.figure(f"{name}: error and AUC", [round(v, 4) for v in scores(model, split)])
        run.figure(f"{name}: iterations", model.n_iter_)
        run.figure(f"{name}: seconds by stage", stages(model))
        sent = sum(p.bytes_sent for p in model.report_.stages["phases"].values())
        run.figure(f"{name}: bytes per row and direction, once", sent / cells)
        if name == "open":
            continue
        level, bits = model.settings_.level, model.settings_.hidden.bits
        kept = cells * bits // 8 / 1e6
        if level == "sealed":
            run.figure(
                f"{name}: MB kept by label party, helper, dealer", [2 * kept, 2 * kept, kept]
            )
        else:
            run.figure(f"{name}: MB kept by label party, helper, dealer", [kept] * 3)
            limit = MOST_BYTES[bits]
            run.target(f"{name}: bytes per row and direction", sent / cells, limit, at_most=True)
            for way, size in bytes_per_pass(model).items():
                per_number = size / (len(split.y) + D)
                run.target(
                    f"{name}: bytes of a pass {way}, per row or direction",
                    per_number,
                    9,
                    at_most=True,
                )
        ratio = took[name] / took["open"]
        run.target(f"{name}: time over open's", ratio, MOST_TIMES[name], at_most=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    run.figure("GB at the peak, all parties in one process", round(peak, 2))
    run.write(options.out)


def between_two(repeats: int, out: Any) -> None:
    """Measure two parties, without a dealer and with one that has no columns."""
    run = Benchmark("privacy-cost-two", {"parties": 2, "D": D, "repeats": repeats})
    split = datasets.a9a()
    models = {
        "no dealer": model_of(2, disclosure="values"),
        "with a dealer": model_of(2, disclosure=Values(dealer="notary")),
    }
    warm = np.random.default_rng(0).normal(size=(1000, split.X.shape[1]))
    for model in models.values():  # compile and warm up
        model.fit(warm, split.y[:1000])
    aucs = {}
    for name, model in models.items():
        seconds, aucs[name] = [], []
        for _ in range(repeats):
            start = time.process_time()
            model.fit(split.X, split.y)
            seconds.append(round(time.process_time() - start, 2))
            aucs[name].append(scores(model, split)[1])
        run.figure(f"{name}: processor seconds, all repeats", sorted(seconds))
        run.figure(f"{name}: AUC, all repeats", [round(one, 5) for one in aucs[name]])
        run.figure(f"{name}: iterations", model.n_iter_)
        sent = {}
        for entry in model.ledger_.entries():
            kind = f"{entry.disclosure.name}, from {entry.sender}"
            sent[kind] = sent.get(kind, 0) + entry.bytes
        run.figure(f"{name}: MB sent", {kind: round(size / 1e6, 1) for kind, size in sent.items()})
        if name == "no dealer":
            run.target(f"{name}: processor seconds", median(seconds), MOST_SECONDS, at_most=True)
            run.target(f"{name}: MB sent", sum(sent.values()) / 1e6, MOST_MEGABYTES, at_most=True)
    gap = median(aucs["with a dealer"]) - median(aucs["no dealer"])
    run.target("AUC with a dealer less without one", gap, AUC_GAP, at_most=True)
    run.write(out)


def model_of(parties: int = PARTIES, **settings: Any) -> FDSKLClassifier:
    shared = {"n_components": D, "bandwidth": bandwidth(0.02), "alpha": 1e-5, "random_state": 0}
    return FDSKLClassifier(parties, **(shared | settings))


def stages(model: FDSKLClassifier) -> dict[str, float]:
    """Seconds of the label party, by stage."""
    (leader,) = model.settings_.label_parties
    return {
        stage: round(parties[leader].seconds, 2)
        for stage, parties in model.report_.stages.items()
        if leader in parties
    }


def bytes_per_pass(model: FDSKLClassifier) -> dict[str, float]:
    """Bytes of one product to the helper, and from it."""
    to_helper = from_helper = products = 0
    for entry in model.ledger_.entries():
        if entry.disclosure.name in ("questions", "product masks"):
            to_helper += entry.bytes
        if entry.disclosure.name == "questions":
            products += entry.frames
        if entry.disclosure.name == "values":
            from_helper += entry.bytes
    return {"to the helper": to_helper / products, "from the helper": from_helper / products}


if __name__ == "__main__":
    main()
