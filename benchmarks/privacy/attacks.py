"""What a label party recovers of the others' columns, in the open and where phases are hidden.

    python -m benchmarks.privacy.attacks

Four parties, the label party holds the first columns. Against `open`: blind source separation of
the phases it holds. Against `values`: the same on all values that the exact solver opened, with and
without the attacker's own columns regressed out; the better of the two counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments
from benchmarks.privacy.recording import phases_held, values_opened
from vertikal import FDSKLClassifier
from vertikal.privacy.attacks.opened_values import separate_values
from vertikal.privacy.attacks.score import Score, score
from vertikal.privacy.attacks.source_separation import separate

PARTIES = 4
D = 1024


def main() -> None:
    options = arguments(__doc__ or "", rows=40_000)
    run = Benchmark("privacy-attacks", {"parties": PARTIES, "D": D, "rows": options.rows})
    for load in (datasets.a9a, datasets.phishing, datasets.default_credit):
        split = load().head(options.rows)
        X = split.X[:, split.X.std(axis=0) > 0]
        parties = {
            f"party{i}": part.tolist()
            for i, part in enumerate(np.array_split(np.arange(X.shape[1]), PARTIES))
        }
        first = len(parties["party0"])
        hidden = X[:, first:]
        model = FDSKLClassifier(parties, n_directions=D, scale="standard", random_state=0)
        if split.name == "a9a":
            model.set_params(scale=None, bandwidth=5.0)
        with phases_held() as held:
            model.fit(X, split.y)
        phases, own, ring = held[0]
        found = separate(phases, own, ring, hidden_parties=PARTIES - 1)
        opened = tell(run, f"{split.name}, open", score(found.components, hidden))
        with values_opened() as values:
            model.set_params(disclosure="values").fit(X, split.y)
        passes = np.concatenate(values, axis=1)
        run.figure(f"{split.name}: values opened per row", passes.shape[1])
        attempts = [
            score(separate_values(passes, mine).components, hidden) for mine in (None, X[:, :first])
        ]
        best = max(attempts, key=lambda found: (found.almost_exact, found.close))
        tell(run, f"{split.name}, values", best)
        run.target(f"{split.name}: columns above 0.99, values", best.almost_exact, 0, at_most=True)
        run.figure(f"{split.name}: columns hidden", opened.columns)
    run.write(options.out)


def tell(run: Benchmark, name: str, found: Score) -> Score:
    figures: dict[str, Any] = {
        "above 0.99": found.almost_exact,
        "above 0.9": found.close,
        "rows right in the former": round(found.rows, 4),
    }
    run.figure(name, figures)
    return found


if __name__ == "__main__":
    main()
