"""Attacks on the values of `KernelClassifier`: what they show of others' columns and rows.

    python -m benchmarks.privacy.tuned_values

The attacks of `benchmarks.privacy.attacks` on a9a, on all values that its pass over all rows opens
with ``disclosure="values"``. Its columns are scaled by their relevance, so that f is made of few of
them: what matters most shows first.
"""

from __future__ import annotations

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments
from benchmarks.privacy.attacks import (
    KNOWN,
    LISTED,
    PARTIES,
    attack_opened,
    chance,
    target_of,
)
from benchmarks.privacy.recording import values_opened
from vertikal import KernelClassifier


def main() -> None:
    options = arguments(__doc__ or "", rows=40_000)
    run = Benchmark(
        "privacy-attacks-tuned",
        {"parties": PARTIES, "rows": options.rows, "listed": LISTED, "known": KNOWN},
    )
    target = target_of(datasets.a9a().head(options.rows))
    run.figure(f"{target.name}: rows and hidden columns", list(target.hidden.shape))
    run.figure(f"{target.name}: rows matched by chance", chance(target))
    model = KernelClassifier(target.parties, disclosure="values", random_state=0)
    with values_opened() as values:
        model.fit(target.X, target.y)
    # Those of the search are about some of the rows, and about other directions.
    of_all = [one for one in values if len(one) == len(target.X)]
    attack_opened(run, target, "values of KernelClassifier", of_all)
    run.write(options.out)


if __name__ == "__main__":
    main()
