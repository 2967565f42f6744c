"""The MPI mesh under a real mpiexec, one process per party.

The whole conformance suite runs on real ranks with the slow tests (`tests/conformance`, "mpi
ranks"); here is enough of it for every day.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conformance import test_collectives as collectives
from tests.conformance import test_meshes as suite
from tests.conformance.meshes import without_mpi
from tests.conformance.ranks import AS_ROOT, MPIEXEC, OPTIONS, ROOT, mpi_ranks

pytestmark = without_mpi

EVERY_DAY = [
    suite.test_messages_under_one_tag_keep_their_order,
    suite.test_tags_do_not_disturb_one_another,
    suite.test_a_missed_deadline_names_who_what_and_since_when,
    suite.test_a_failing_party_ends_the_waits_of_all_others,
    suite.test_what_was_sent_before_a_failure_can_still_be_read,
    suite.test_a_fast_sender_waits_for_its_receiver,
    collectives.test_many_rounds_along_changing_trees_do_not_mix,
]


@pytest.mark.parametrize("check", EVERY_DAY, ids=lambda check: check.__name__.removeprefix("test_"))
def test_real_ranks(check):
    check(mpi_ranks)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float64"])
def test_real_ranks_carry_arrays(dtype):
    suite.test_arrays_of_every_dtype_and_shape_arrive_as_they_were(mpi_ranks, dtype)


def test_real_ranks_carry_large_messages():
    suite.test_a_large_message_passes(mpi_ranks, 8)


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


def test_a_rank_that_raises_ends_the_job_with_its_error_shown(tmp_path):
    (tmp_path / "a.csv").write_text("u,y\n1,0\n2,1\n3,0\n")
    (tmp_path / "job.toml").write_text(
        '[parties.a]\ntable = "a.csv"\nlabel = "y"\n[parties.b]\ntable = "gone.csv"\n'
    )
    done = mpiexec(2, "-m", "vertikal", "run", str(tmp_path / "job.toml"))
    assert done.returncode != 0
    assert "table of b: 'gone.csv' cannot be read" in done.stderr
