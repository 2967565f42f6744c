"""Parties that are started here: whose failure ends the others, and whose does not."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from vertikal.algorithms.kernel_machine.algorithm import AVFKAM
from vertikal.errors import MeshError
from vertikal.node.config.job_file import Job
from vertikal.node.runs.launch import run_threads, supervise
from vertikal.node.runs.progress import ProgressReporter
from vertikal.node.runs.workplaces import models_in

GOOD = [sys.executable, "-c", "pass"]
BAD = [sys.executable, "-c", "import sys; sys.exit('error: out of memory')"]


def test_when_all_end_well_nobody_is_missing():
    assert supervise({"a": GOOD, "b": GOOD}, print) == ()


def test_a_failure_is_named():
    with pytest.raises(MeshError, match=r"^b: out of memory$"):
        supervise({"a": GOOD, "b": BAD}, print)


def test_without_a_dispensable_one_the_others_finish():
    assert supervise({"a": GOOD, "b": BAD, "c": GOOD}, print, ("a", "b")) == ("b",)


@pytest.mark.parametrize("dispensable", [("b",), ("a",)])
def test_without_the_last_dispensable_one_they_do_not(dispensable):
    with pytest.raises(MeshError, match="out of memory"):
        supervise({"a": GOOD, "b": BAD}, print, dispensable)


JOB = """
algorithm = "avfkam"
secret_seed = 1
timeout = 60
[settings]
n_components = 48
scale = "standard"
[settings.solver]
name = "dsg"
block_size = 16
n_steps = 60
allow_missing = {allow}
[parties.bank]
table = "bank.csv"
label = "y"
[parties.shop]
table = "shop.csv"
label = "y"
[parties.port]
table = "port.csv"
"""


def lose_the_shop(monkeypatch):
    """The shop fails in its first step; the others wait for that in theirs."""
    gone, advance = threading.Event(), ProgressReporter.advance

    def advances(self, party, stage, amount, note):
        if stage == "solve" and party == "shop":
            gone.set()
            raise RuntimeError("the power went out")
        if stage == "solve":
            gone.wait(30)
        advance(self, party, stage, amount, note)

    monkeypatch.setattr(ProgressReporter, "advance", advances)


@pytest.mark.parametrize("allow", [True, False])
def test_threads_finish_without_a_party_that_the_job_can_spare(tmp_path, monkeypatch, allow):
    X = np.random.default_rng(0).normal(size=(120, 6))
    y = X[:, 0] * X[:, 2] > 0.3
    for place, name in enumerate(("bank", "shop", "port")):
        block, titles = np.column_stack((X[:, 2 * place : 2 * place + 2], y)), "u,v,y"
        if name == "port":
            block, titles = block[:, :2], "u,v"
        np.savetxt(tmp_path / f"{name}.csv", block, "%.17g", ",", header=titles, comments="")
    path, out = tmp_path / "job.toml", tmp_path / "out"
    path.write_text(JOB.format(allow=str(allow).lower()))
    lose_the_shop(monkeypatch)
    if not allow:
        with pytest.raises(RuntimeError, match="the power went out"):
            run_threads(path, Job.load(path), out, lambda progress: None)
        return
    assert run_threads(path, Job.load(path), out, lambda progress: None) == ("shop",)
    bank, shop = (models_in(out, name).load("job", AVFKAM).shard for name in ("bank", "shop"))
    assert (bank.training.missing, bank.coefficients is None) == (("shop",), False)
    # What the lost party had stored before is good for its columns in predictions.
    assert shop.coefficients is None
