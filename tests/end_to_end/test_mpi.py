"""The MPI mesh under a real mpiexec, one process per party."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")

from tests.end_to_end.ranks import CHECKS

ROOT = Path(__file__).parents[2]
MPIEXEC = Path(sys.executable).with_name("mpiexec")
# More ranks than cores must not starve each other; and a container's user is root.
OPTIONS = ("--oversubscribe", "--mca", "mpi_yield_when_idle", "1")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

pytestmark = pytest.mark.skipif(not MPIEXEC.exists(), reason="no mpiexec next to this Python")


def mpiexec(ranks, *command, timeout=120):
    return subprocess.run(
        [str(MPIEXEC), "-n", str(ranks), *OPTIONS, sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, **AS_ROOT},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.parametrize("ranks", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 8))])
def test_ranks_pass_every_check(ranks):
    done = mpiexec(ranks, "-m", "tests.end_to_end.ranks")
    assert done.returncode == 0, done.stdout + done.stderr
    passed = [line for line in done.stdout.splitlines() if line.startswith("passed")]
    assert passed == [f"passed {check.__name__}" for check in CHECKS]


def test_a_rank_that_raises_ends_the_job_with_its_error_shown(tmp_path):
    (tmp_path / "a.csv").write_text("u,y\n1,0\n2,1\n3,0\n")
    (tmp_path / "job.toml").write_text(
        '[parties.a]\ntable = "a.csv"\nlabel = "y"\n[parties.b]\ntable = "gone.csv"\n'
    )
    done = mpiexec(2, "-m", "vertikal", "run", str(tmp_path / "job.toml"), timeout=60)
    assert done.returncode != 0
    assert "table of b: 'gone.csv' cannot be read" in done.stderr
