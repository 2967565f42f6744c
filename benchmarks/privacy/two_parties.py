"""Attacks of the label party on the other's columns and rows, two parties without a dealer.

    python -m benchmarks.privacy.two_parties

The attacks of `benchmarks.privacy.attacks` on all that the label party holds under
``disclosure="values"``: the values that the exact solver opened, and the words that it keeps of the
features, which are under the other's mask.
"""

from __future__ import annotations

import numpy as np

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments
from benchmarks.privacy.attacks import (
    KNOWN,
    LISTED,
    MASKED,
    D,
    attack_masked,
    attack_opened,
    chance,
    target_of,
)
from benchmarks.privacy.recording import values_opened, words_held


def main() -> None:
    options = arguments(__doc__ or "", rows=40_000)
    run = Benchmark(
        "privacy-attacks-two",
        {"parties": 2, "D": D, "rows": options.rows, "listed": LISTED, "known": KNOWN},
    )
    for load in (datasets.a9a, datasets.phishing):
        target = target_of(load().head(options.rows), 2)
        run.figure(f"{target.name}: rows and hidden columns", list(target.hidden.shape))
        run.figure(f"{target.name}: rows matched by chance", chance(target))
        with values_opened() as values, words_held() as held:
            target.model(disclosure="values")
        attack_opened(run, target, "values without a dealer", values)
        words = held[0][:, :MASKED].view(np.int32) * 2.0**-31
        attack_masked(run, target, "words that are kept", words)
    run.write(options.out)


if __name__ == "__main__":
    main()
