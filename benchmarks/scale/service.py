"""A job through three services: from `vertikal job submit` to a model, and what that adds.

    python -m benchmarks.scale.service

default-credit, all 30,000 rows, its columns at three parties, mutual TLS on loopback, approvals by
rule. Seconds by stage as the label party saw them; the same program without services (three
processes over the network mesh: align, prepare, train) in turn with it; the start of a party; one
row predicted over HTTP; identical jobs in a row.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import default_credit
from benchmarks.harness import Benchmark, arguments, median, seconds
from vertikal.node.config.federation_file import entry_of
from vertikal.node.control import ask
from vertikal.secure.keys.identity import Identity

NAMES = ("lender", "bank", "shop")
WAIT = 900.0

PARTY = """
name = "{name}"
key = "{name}.key"
certificate = "{name}.crt"
federation = "federation.toml"
store = "store"
[tables.people]
source = "people.parquet"
id = "customer"
features = {features}
labels = {labels}
[policy]
who = ["lender"]
disclosures = ["open", "values"]
predictions_per_day = 1000000
most_questions = 1000000
[[policy.standing]]
who = ["lender"]
algorithms = ["fdskl"]
disclosures = ["open", "values"]
per_day = 1000
{http}
"""
JOB = """
timeout = 300
[settings]
n_components = {directions}
scale = "standard"
disclosure = "{disclosure}"
[parties.lender]
table = "people"
label = "default"
[parties.bank]
table = "people"
[parties.shop]
table = "people"
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def lay_out(root: Path, rows: int, directions: int, disclosure: str) -> int:
    """Folders, keys, tables and party files; returns the port of HTTP."""
    import pyarrow
    import pyarrow.parquet

    split = default_credit()
    X = np.vstack((split.X, split.X_test))[:rows]
    y = np.concatenate((split.y, split.y_test))[:rows]
    parts = np.array_split(np.arange(X.shape[1]), len(NAMES))
    entries, http, port = [], free_port(), free_port()
    draw = np.random.default_rng(0)
    for name, columns in zip(NAMES, parts, strict=True):
        folder = root / name
        folder.mkdir()
        identity = Identity.create(name)
        identity.save(folder / f"{name}.key", folder / f"{name}.crt")
        entries.append(entry_of(identity, f"127.0.0.1:{port}" if name == "lender" else None))
        order = draw.permutation(len(X))
        cells: dict[str, Any] = {"customer": order}
        cells |= {f"x{column}": X[order, column] for column in columns}
        if name == "lender":
            cells["default"] = y[order]
        pyarrow.parquet.write_table(pyarrow.table(cells), folder / "people.parquet")
        served = f'[http]\nlisten = "127.0.0.1:{http}"\ntoken_file = "token"\nper_minute = 100000'
        (folder / "party.toml").write_text(
            PARTY.format(
                name=name,
                features=json.dumps([f"x{column}" for column in columns]),
                labels='["default"]' if name == "lender" else "[]",
                http=served if name == "lender" else "",
            )
        )
    for name in NAMES:
        (root / name / "federation.toml").write_text("\n".join(entries))
    (root / "bare-port").write_text(str(free_port()))
    job = JOB.format(directions=directions, disclosure=disclosure)
    (root / "lender" / "credit.toml").write_text(job)
    return http


def start(root: Path, name: str) -> tuple[subprocess.Popen[bytes], float]:
    """A service, and the seconds from its start to ready."""
    began = time.monotonic()
    log = root / name / f"log-{time.monotonic_ns()}"
    with log.open("wb") as file:
        child = subprocess.Popen(
            [sys.executable, "-m", "vertikal", "party", "start", "party.toml"],
            cwd=root / name,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    while b"is ready" not in log.read_bytes():
        if child.poll() is not None or time.monotonic() - began > 60:
            raise SystemExit(log.read_text())
        time.sleep(0.005)
    return child, time.monotonic() - began


def submit(root: Path) -> tuple[float, dict[str, float]]:
    """One job by the command line: seconds until all are done, and by stage at the label party."""
    began = time.monotonic()
    told = subprocess.run(
        [sys.executable, "-m", "vertikal", "job", "submit", "credit.toml"],
        cwd=root / "lender",
        check=True,
        capture_output=True,
        text=True,
    )
    name = told.stdout.split()[1].rstrip(":")
    seen = [("submit", began)]
    store = root / "lender" / "store"
    while True:
        # Of this job alone: a list of all would take longer with every job.
        one = ask(store, "follow", job=name)
        stage = one["stage"] or ("approval" if not one["done"] else "done")
        if stage != seen[-1][0]:
            seen.append((stage, time.monotonic()))
        if one["done"]:
            break
        if not one["open"] or time.monotonic() - began > WAIT:
            raise SystemExit(f"the job did not end well: {one}")
        time.sleep(0.01)
    for party in NAMES:
        while not ask(root / party / "store", "follow", job=name)["done"]:
            time.sleep(0.01)
    stages: dict[str, float] = {}
    for (stage, from_), (_, to) in pairwise(seen):
        stages[stage] = stages.get(stage, 0.0) + to - from_
    return time.monotonic() - began, stages


def bare(root: Path) -> float:
    """The same work by three processes without services; from all connected to the last shard."""
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.scale.service_bare", str(root), name],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in NAMES
    ]
    times = [float(child.communicate(timeout=WAIT)[0].split()[-1]) for child in children]
    if any(child.returncode for child in children):
        raise SystemExit("the bare program failed")
    return max(times)


def predict_one(port: int, token: str, count: int) -> list[float]:
    def one() -> None:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/predict",
            b'{"model": "credit", "ids": ["17"]}',
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)["scores"][0]["status"] == "ok"

    one()
    return [seconds(one) for _ in range(count)]


def resident(child: subprocess.Popen[bytes]) -> int:
    """Bytes of memory that a process has."""
    pages = int(Path(f"/proc/{child.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def worked(child: subprocess.Popen[bytes]) -> float:
    """Processor seconds that a process and its own children have taken."""
    ticks = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def measure(bench: Benchmark, root: Path, repeats: int, jobs: int, port: int) -> None:
    children = {}
    try:
        readies = []
        for name in NAMES:
            children[name], ready = start(root, name)
            readies.append(ready)
            time.sleep(4.0)  # its libraries are loaded behind it
        bench.target("start of a party to ready, s", max(readies), 2.0, at_most=True)
        with_services, without, by_stage = [], [], []
        for _ in range(repeats):
            without.append(bare(root))
            total, stages = submit(root)
            with_services.append(total)
            by_stage.append(stages)
        for stage in by_stage[-1]:
            spent = median([one.get(stage, 0.0) for one in by_stage])
            bench.figure(f"seconds of stage {stage}", spent)
        bench.figure("submit to model, s", median(with_services))
        bench.figure("the bare program, s", median(without))
        shares = [a / b - 1 for a, b in zip(with_services, without, strict=True)]
        bench.target("overhead beyond the bare program", median(shares), 0.15, at_most=True)
        token = (root / "lender" / "token").read_text()
        times = predict_one(port, token, 200)
        bench.figure("one row over HTTP, p50, ms", 1000 * median(times))
        bench.figure("one row over HTTP, p95, ms", 1000 * sorted(times)[int(0.95 * len(times))])
        in_a_row(bench, root, children, jobs)
    finally:
        for child in children.values():
            child.send_signal(signal.SIGTERM)
        for child in children.values():
            child.wait(60)


def in_a_row(
    bench: Benchmark, root: Path, children: dict[str, subprocess.Popen[bytes]], jobs: int
) -> None:
    times, memory, work = [], [], []
    for _ in range(jobs):
        before = sum(worked(child) for child in children.values())
        times.append(submit(root)[0])
        work.append(sum(worked(child) for child in children.values()) - before)
        memory.append(sum(resident(child) for child in children.values()))
    bench.figure(f"seconds of {jobs} identical jobs in a row", [round(one, 3) for one in times])
    bench.figure("their processor seconds at all parties", [round(one, 2) for one in work])
    bench.figure("their memory in all, MB", [round(one / 1e6, 1) for one in memory])
    if jobs > 1:
        bench.target("memory of the last to the first", memory[-1] / memory[0], 1.05, at_most=True)
        ratio = median(times[-3:]) / median(times[:3])
        bench.target("time of the last three to the first three", ratio, 1.05, at_most=True)
        ratio = median(work[-3:]) / median(work[:3])
        bench.figure("processor seconds of the last three to the first three", ratio)
        bench.figure("time of the slowest of all to the first", max(times) / times[0])


def main() -> None:
    options = arguments(
        __doc__ or "", rows=30000, directions=1024, disclosure="open", repeats=3, jobs=20
    )
    settings = {
        name: getattr(options, name)
        for name in ("rows", "directions", "disclosure", "repeats", "jobs")
    }
    bench = Benchmark("scale-service", settings)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        port = lay_out(root, options.rows, options.directions, options.disclosure)
        measure(bench, root, options.repeats, options.jobs, port)
    bench.write(options.out)


if __name__ == "__main__":
    main()
