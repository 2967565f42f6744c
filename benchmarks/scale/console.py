"""The console beside a run: how long a page takes, and what ten open pages cost the run.

    python -m benchmarks.scale.console

Three services of generated people on loopback, mutual TLS, approvals by rule. The same job runs in
turn with no page open and with ten pages of the lender's console that watch it, each of its own
session. Seconds are from submission to the lender's model; processor seconds are those of all
services and consoles, which a busy machine does not change much. Pages are asked for while a job
runs.
"""

from __future__ import annotations

import http.client
import os
import socket
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.harness import Benchmark, arguments, median
from vertikal.demo.federation import FIRST, NAMES, DemoFederation, lay_out
from vertikal.errors import DeadlineExceeded
from vertikal.node.control import ask

PAGES = 10
WAIT = 120.0
PATHS = ("/", "/jobs", "/jobs/{job}", "/models", "/tables", "/audit")


class Visitor:
    """A browser of the lender's owner, without a screen."""

    def __init__(self, link: str) -> None:
        parts = urlsplit(link)
        self.host = parts.netloc
        connection = http.client.HTTPConnection(self.host, timeout=WAIT)
        connection.request("GET", f"{parts.path}?{parts.query}")
        answer = connection.getresponse()
        answer.read()
        self.cookie = str(answer.headers["set-cookie"]).partition(";")[0]
        connection.close()

    def get(self, path: str) -> float:
        """Ask for a page; seconds until all of it is there."""
        began = time.perf_counter()
        connection = http.client.HTTPConnection(self.host, timeout=WAIT)
        connection.request("GET", path, headers={"Cookie": self.cookie})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{path}: status {answer.status}")
        return time.perf_counter() - began

    def watch(self, path: str) -> tuple[socket.socket, threading.Thread]:
        """Read a page's stream in a thread of its own, until its socket is shut."""
        connection = http.client.HTTPConnection(self.host, timeout=WAIT)
        connection.connect()

        def read() -> None:
            connection.request("GET", path, headers={"Cookie": self.cookie})
            answer = connection.getresponse()
            with suppress(http.client.HTTPException, OSError):
                while answer.read1(1 << 16):
                    pass
            connection.close()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        return connection.sock, reader


def main() -> None:
    options = arguments(__doc__ or "", rows=30_000, directions=3072, repeats=7)
    bench = Benchmark("console", {key: one for key, one in vars(options).items() if key != "out"})
    with tempfile.TemporaryDirectory() as root:
        lay_out(Path(root), options.rows, 0)
        for name in NAMES:  # the rule of the demonstration approves twenty jobs a day
            file = Path(root, name, "party.toml")
            file.write_text(file.read_text().replace("per_day = 20", "per_day = 200"))
        federation = DemoFederation(Path(root))
        try:
            federation.start()
            measure(bench, federation, Path(root), options.directions, options.repeats)
        finally:
            federation.stop()
    bench.write(options.out)


def measure(
    bench: Benchmark, federation: DemoFederation, root: Path, directions: int, repeats: int
) -> None:
    store = root / "lender" / "store"
    template = (root / "lender" / f"{FIRST}.toml").read_text()
    template = template.replace("n_components = 256", f"n_components = {directions}")
    visitors = [Visitor(federation.link("lender")) for _ in range(PAGES)]
    visitor = visitors[0]
    processes = [one for name in NAMES for one in federation.processes(name)]
    numbers = iter(range(1000))

    def submit() -> str:
        name = f"job-{next(numbers)}"
        (root / "lender" / f"{name}.toml").write_text(template)
        return federation.submit(name)

    def done(digest: str) -> bool:
        return bool(ask(store, "follow", job=digest)["done"])

    def run(pages: int) -> dict[str, float]:
        """One job, watched by so many pages."""
        used = sum(map(processor_seconds, processes))
        began = time.perf_counter()
        digest = submit()
        watchers = [one.watch(f"/live/jobs/{digest}") for one in visitors[:pages]]
        while not done(digest):
            if time.perf_counter() - began > WAIT:
                raise DeadlineExceeded(f"{digest} is not done after {WAIT:g} s")
            time.sleep(0.1)
        took = time.perf_counter() - began
        work = sum(map(processor_seconds, processes)) - used
        for one, reader in watchers:
            one.shutdown(socket.SHUT_RDWR)
            reader.join(WAIT)
        return {"seconds": took, "work": work}

    run(0)
    runs: dict[int, list[dict[str, float]]] = {0: [], PAGES: []}
    for _ in range(repeats):
        for pages, many in runs.items():
            many.append(run(pages))
    found = {
        pages: {key: median([one[key] for one in many]) for key in many[0]}
        for pages, many in runs.items()
    }
    for pages, figures in found.items():
        for key, value in figures.items():
            bench.figure(f"{pages} pages open: {_TITLES[key]}", value)
    wall = bench.figure(
        "run with ten pages over run with none, seconds",
        found[PAGES]["seconds"] / found[0]["seconds"],
    )
    work = bench.figure(
        "the same, processor seconds of all services and consoles",
        found[PAGES]["work"] / found[0]["work"],
    )
    bench.target("slowdown by ten pages, seconds", wall, 1.02, at_most=True)
    bench.target("slowdown by ten pages, processor seconds", work, 1.02, at_most=True)
    digest = submit()
    for path in PATHS:
        visitor.get(path.format(job=digest))
    times: dict[str, list[float]] = {path: [] for path in PATHS}
    while not done(digest) or len(times["/"]) < 20:
        for path in PATHS:
            times[path].append(visitor.get(path.format(job=digest)))
    for path, many in times.items():
        value = bench.figure(f"page {path} while a job runs, milliseconds", 1000 * median(many))
        bench.target(f"page {path}, milliseconds", value, 100.0, at_most=True)


_TITLES = {
    "seconds": "seconds to the model",
    "work": "processor seconds of all services and consoles",
}


def processor_seconds(process: int) -> float:
    """Seconds of all cores that a process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
