"""a9a, 4 parties, D = 1024: what hiding the phases costs, in one run and in turn.

python -m benchmarks.privacy.cost
"""

from __future__ import annotations

from typing import Any

from benchmarks import datasets
from benchmarks.accuracy.figures import bandwidth, scores
from benchmarks.harness import Benchmark, alternating, arguments, median
from vertikal import FDSKLClassifier

PARTIES = 4
D = 1024


def main() -> None:
    options = arguments(__doc__ or "", repeats=5)
    run = Benchmark("privacy-cost", {"parties": PARTIES, "D": D, "repeats": options.repeats})
    split = datasets.a9a()
    shared: dict[str, Any] = {
        "n_directions": D,
        "bandwidth": bandwidth(0.02),
        "penalty": 1e-5,
        "random_state": 0,
    }
    models = {
        "open": FDSKLClassifier(PARTIES, **shared),
        "values, 64 bits": FDSKLClassifier(PARTIES, disclosure="values", **shared),
        "values, 32 bits": FDSKLClassifier(PARTIES, disclosure="values", hidden_bits=32, **shared),
    }
    for model in models.values():  # compile and warm up
        model.fit(split.X, split.y)
    times = alternating(
        {
            name: lambda model=model: model.fit(split.X, split.y)  # type: ignore[misc]
            for name, model in models.items()
        },
        options.repeats,
    )
    took = {name: median(values) for name, values in times.items()}
    found = {name: scores(model, split) for name, model in models.items()}
    for name, model in models.items():
        run.figure(f"{name}: seconds, all repeats", [round(t, 3) for t in sorted(times[name])])
        run.figure(f"{name}: error and AUC", [round(value, 4) for value in found[name]])
        run.figure(f"{name}: iterations", model.n_iter_)
        sent = sum(p.bytes_sent for p in model.report_.stages["phases"].values())
        run.figure(f"{name}: bytes per row and direction, once", sent / (len(split.y) * D))
        if name == "open":
            continue
        bits = model.hidden_bits
        run.figure(f"{name}: MB kept by each of three roles", len(split.y) * D * bits // 8 / 1e6)
        run.target(f"{name}: time over open's", took[name] / took["open"], 5, at_most=True)
        run.target(
            f"{name}: AUC below open's", found["open"][1] - found[name][1], 0.001, at_most=True
        )
        run.target(
            f"{name}: bytes per row and direction",
            sent / (len(split.y) * D),
            {32: 16, 64: 28}[bits],
            at_most=True,
        )
    run.write(options.out)


if __name__ == "__main__":
    main()
