"""The linear kernel with open features under the attacks on phases, beside the Gaussian kernel.

    python -m benchmarks.privacy.linear

Four parties, a9a and phishing, 256 private directions, columns in units of their deviation; the
attacks are those of `attacks`. Angles of the linear kernel are small, so that they never wrap and
no offset has to be guessed: each is a linear combination of columns, to a byte.
"""

from __future__ import annotations

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments
from benchmarks.privacy.attacks import PARTIES, chance, target_of, tell
from benchmarks.privacy.recording import phases_held
from vertikal.privacy.attacks.source_separation import separate

KERNELS = ("gaussian", "linear")


def main() -> None:
    options = arguments(__doc__ or "", rows=10_000, directions=256)
    run = Benchmark(
        "privacy-linear",
        {"parties": PARTIES, "rows": options.rows, "directions": options.directions},
    )
    for load in (datasets.a9a, datasets.phishing):
        target = target_of(load().head(options.rows))
        columns = target.hidden.shape[1]
        run.figure(f"{target.name}: rows and hidden columns", list(target.hidden.shape))
        run.figure(f"{target.name}: rows matched by chance", chance(target))
        for kernel in KERNELS:
            with phases_held() as held:
                target.model(
                    kernel=kernel,
                    scale="standard",
                    bandwidth="mean",
                    n_components=options.directions,
                )
            phases, own, ring = held[0]
            found = separate(phases, own, ring, hidden_parties=PARTIES - 1, most=columns)
            tell(run, target, f"{target.name}, {kernel} kernel", [found], found.scores)
    run.write(options.out)


if __name__ == "__main__":
    main()
