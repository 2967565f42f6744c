"""FDSKL Figure 4: tree, star and cycle compared, by the time of one linear Gram matrix.

    python -m benchmarks.papers.fdskl.figure4

The paper sums the linear Gram matrix of the data over its workers by three communication
structures, and shows seconds against the number of workers; it does not say what links it had. Here
the same work (SecGram's program, masked by pads) runs over the network mesh, each pair of parties
on a link of its own, through a proxy that delays and limits bytes (`benchmarks.shaping`). The
parties are threads of one process, so that without delay it is this machine's cores that are
compared.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments, median
from benchmarks.shaping import Links, Profile
from vertikal.algorithms.gram.secgram import GramSettings, gram_matrix
from vertikal.compute.threads import one_blas_thread
from vertikal.data.tables import Table
from vertikal.mesh.collectives import SHAPES
from vertikal.mesh.network import NetworkMesh
from vertikal.party.party import Labels, Party, digest
from vertikal.reporting.line_chart import Series, line_chart
from vertikal.secure.keys.credentials import Credentials
from vertikal.secure.keys.identity import Identity

PROFILES = (
    Profile("no delay"),
    Profile("10 ms", 0.010),
    Profile("50 ms", 0.050),
    Profile("100 Mb/s, 10 ms", 0.010, 100e6 / 8),
)
NAME = "papers-fdskl-figure4"


class Network:
    """``count`` parties of which all listen, so that each pair has a link, through the proxy."""

    def __init__(self, identities: dict[str, Identity], profile: Profile) -> None:
        self.names = tuple(identities)
        self._links = Links(profile)
        self.ends: dict[str, NetworkMesh] = {}
        listed = {name: identity.certificate for name, identity in identities.items()}
        for place, name in enumerate(self.names):
            # A party dials those before it, and is dialled by those after it.
            addresses: dict[str, str | None] = {}
            for other in self.names:
                addresses[other] = "127.0.0.1:0"
                if other in self.names[:place]:
                    port = self._links.open(name, other, self.ends[other].port or 0)
                    addresses[other] = f"127.0.0.1:{port}"
            self.ends[name] = NetworkMesh(
                name, addresses, Credentials(identities[name], listed), job=NAME, version="1"
            )
        for end in self.ends.values():
            end.connect()

    def together(self, work: Callable[[str], Any]) -> dict[str, Any]:
        """Return what each party's work returned, all at the same time."""
        results: dict[str, Any] = {}

        def one(name: str) -> None:
            results[name] = work(name)

        threads = [threading.Thread(target=one, args=(name,)) for name in self.names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def close(self) -> None:
        self.together(lambda name: self.ends[name].stop(0.0))
        self._links.close()


def parties_of(network: Network, X: Any, shape: str, settings: GramSettings) -> dict[str, Party]:
    """A party per mesh end, with its share of the columns; keys are agreed here."""
    blocks = dict(zip(network.names, np.array_split(X, len(network.names), axis=1), strict=True))

    def party(name: str) -> Party:
        columns = tuple(str(i) for i in range(blocks[name].shape[1]))
        labels = Labels(np.ones((len(X), 1)), np.ones(len(X)))
        return Party(
            network.ends[name],
            Table(name, columns, blocks[name]),
            label_parties=settings.label_parties,
            labels=labels if name in settings.label_parties else None,
            secret=bytes(32),
            job=f"{NAME}/{shape}",
            settings_digest=digest(settings),
            version="1",
            shape=shape,
        )

    return network.together(party)


def measure(network: Network, X: Any, repeats: int) -> dict[str, float]:
    """Median seconds of one Gram matrix by structure; they take turns."""
    first = network.names[0]
    settings = GramSettings(parties=network.names, label_parties=(first,), ring_bits=32)
    parties = {shape: parties_of(network, X, shape, settings) for shape in SHAPES}
    times: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    for turn in range(repeats + 1):
        for shape, those in parties.items():
            began = time.perf_counter()
            gram = network.together(lambda name, those=those: gram_matrix(those[name], settings)[1])
            if turn:  # the first one warms up
                times[shape].append(time.perf_counter() - began)
            np.testing.assert_array_equal(gram[first].values, X @ X.T)
    return {shape: median(values) for shape, values in times.items()}


def draw(seconds: dict[str, dict[str, dict[int, float]]]) -> str:
    """Draw one panel per profile, in one SVG."""
    width, height = 480, 380
    panels = []
    for place, (profile, lines) in enumerate(seconds.items()):
        chart = line_chart(
            [Series(shape, list(found), list(found.values())) for shape, found in lines.items()],
            title=f"One Gram matrix: {profile}",
            x_label="parties",
            y_label="seconds",
            width=width,
            height=height,
        )
        x, y = (width + 40) * (place % 2), (height + 40) * (place // 2)
        panels.append(f'<g transform="translate({x + 20},{y + 20})">{chart}</g>')
    size = 2 * (width + 40), (height + 40) * ((len(panels) + 1) // 2)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" class="vk-svg" role="img" '
        f'width="{size[0]}" height="{size[1]}" viewBox="0 0 {size[0]} {size[1]}" '
        'aria-label="Seconds of one Gram matrix by tree, star and cycle over parties.">'
        '<rect width="100%" height="100%" style="fill:var(--vk-surface)"/>'
        f"{''.join(panels)}</svg>"
    )


def main() -> None:
    options = arguments(__doc__ or "", rows=1000, repeats=3, parties="2,4,6,8,12,16")
    counts = [int(count) for count in options.parties.split(",")]
    X = datasets.a9a().head(options.rows).X
    identities = {name: Identity.create(name) for name in (f"p{i:02}" for i in range(max(counts)))}
    bench = Benchmark(NAME, vars(options) | {"out": "", "data": "a9a", "ring bits": 32})
    seconds: dict[str, dict[str, dict[int, float]]] = {}
    with one_blas_thread():
        for profile in PROFILES:
            lines = seconds[profile.name] = {shape: {} for shape in SHAPES}
            for count in counts:
                network = Network(dict(list(identities.items())[:count]), profile)
                try:
                    for shape, took in measure(network, X, options.repeats).items():
                        lines[shape][count] = took
                        bench.figure(f"{profile.name}, {count} parties, {shape}, seconds", took)
                finally:
                    network.close()
    most = max(counts)
    for profile_name, lines in seconds.items():
        for shape in ("star", "cycle"):
            ratio = lines[shape][most] / lines["tree"][most]
            bench.figure(f"{profile_name}, {most} parties, {shape} / tree", ratio)
    bench.write(options.out)
    bench.draw(options.out, draw(seconds))


if __name__ == "__main__":
    main()
