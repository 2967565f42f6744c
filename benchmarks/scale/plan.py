"""`vertikal job plan` against the run that follows: three numbers of rows, three levels.

    python -m benchmarks.scale.plan
    python -m benchmarks.scale.plan --sizes 5000,20000 --directions 512 --part other

default-credit, its columns at three services on loopback, approvals by rule, a job with an
evaluation. For each size and level the plan is asked for, then the job is submitted; its seconds
count from the end of `vertikal job submit` to the model at all three, alignment and evaluation
included. The plan should be within 50 % of the run. The second command is on cases that the model
of the plan was not made for; its results have ``part`` in their name.
"""

from __future__ import annotations

import signal
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

from benchmarks.harness import Benchmark, arguments
from benchmarks.scale.service import NAMES, lay_out, start, submit
from vertikal.node.control import ask

WITHIN = 1.5
"""The plan over the run, or the run over the plan, whichever is larger."""


def allow_sealed(root: Path) -> None:
    for name in NAMES:
        file = root / name / "party.toml"
        text = file.read_text().replace('["open", "values"]', '["open", "values", "sealed"]')
        file.write_text(text.replace("[policy]", "[policy]\nmost_row_bits = 1000000", 1))


def measure(
    rows: int, level: str, directions: int
) -> tuple[dict[str, Any], float, dict[str, float]]:
    """Plan and run one job; returns the plan, the seconds of the run, and those by stage."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lay_out(root, rows, directions, level)
        allow_sealed(root)
        job = root / "lender" / "credit.toml"
        text = job.read_text().replace(
            "[parties.lender]", "[evaluation]\nholdout = 0.2\n[parties.lender]", 1
        )
        if level == "sealed":
            text = text.replace("[settings]", '[settings]\nloss = "square"', 1)
        job.write_text(text)
        children = {}
        try:
            for name in NAMES:
                children[name], _ = start(root, name)
            time.sleep(4.0)  # libraries are loaded behind the start
            store = root / "lender" / "store"
            plan = ask(store, "plan", job=tomllib.loads(text))
            took, stages = submit(root)
            return plan, took - stages.pop("submit"), stages
        finally:
            for child in children.values():
                child.send_signal(signal.SIGTERM)
            for child in children.values():
                child.wait(60)


def main() -> None:
    options = arguments(
        __doc__ or "",
        directions=256,
        sizes="2000,8000,30000",
        levels="open,values,sealed",
        part="",
    )
    sizes, levels = [int(one) for one in options.sizes.split(",")], options.levels.split(",")
    settings = {"sizes": sizes, "levels": levels, "directions": options.directions, "holdout": 0.2}
    bench = Benchmark(f"scale-plan{options.part and '-'}{options.part}", settings)
    for level in levels:
        for rows in sizes:
            plan, took, stages = measure(rows, level, options.directions)
            planned = 60 * plan["minutes"]["as measured"]
            title = f"{level}, {rows} rows"
            bench.figure(f"{title}: planned, s", planned)
            bench.figure(f"{title}: took, s", took)
            bench.figure(
                f"{title}: planned by stage, s",
                {name: round(one, 2) for name, one in plan["stages"].items()},
            )
            bench.figure(
                f"{title}: by stage, s", {name: round(one, 2) for name, one in stages.items()}
            )
            bench.target(
                f"{title}: one over the other",
                max(planned / took, took / planned),
                WITHIN,
                at_most=True,
            )
    bench.write(options.out)


if __name__ == "__main__":
    main()
