"""The runs of one party: beside one another, and when one cannot be started."""

from __future__ import annotations

import threading

import msgspec
import pytest

from tests.node.alone import alone, kept, proposal
from tests.organisations import NAMES, lay_out, write_job
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.node.config.job_file import Job
from vertikal.node.runs.run_thread import RunThread
from vertikal.solvers import lbfgs

pytestmark = pytest.mark.usefixtures("quick_beats")


def submit(world, name, directions):
    write_job(world.root, directions=directions, settings='disclosure = "open"')
    job = Job.load(world.root / "lender" / "credit.toml")
    return world["lender"].decisions.submit(name, job).digest


def shards(world, name):
    """The model with this name at all parties, bit for bit."""
    found = (world.models(party).load(name, FDSKL).shard for party in NAMES)
    return [msgspec.json.encode(one, enc_hook=lambda array: array.tolist()) for one in found]


def test_two_jobs_at_once_give_the_models_of_jobs_alone(world, monkeypatch):
    real, met, meeting = lbfgs.line_search, set(), threading.Barrier(2, timeout=60)

    def search(*arguments):
        # Neither solver goes on before both are under way.
        if threading.get_ident() not in met:
            met.add(threading.get_ident())
            meeting.wait()
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(lbfgs, "line_search", search)
        together = [submit(world, "small", 16), submit(world, "large", 48)]
        for digest in together:
            world.done(digest)
    assert len(met) == 2
    found = {name: shards(world, name) for name in ("small", "large")}
    for name, directions in (("small", 16), ("large", 48)):
        world.done(submit(world, name, directions))
        assert world.models("shop").show(name).version == 2
        assert shards(world, name) == found[name]


def test_a_run_that_cannot_be_started_is_not_running(tmp_path, monkeypatch):
    lay_out(tmp_path, rows=60)

    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(RunThread, "start", start)
    with alone(tmp_path) as (service, said):
        record = kept(service, proposal(tmp_path))
        record.attempt = 1
        with pytest.raises(RuntimeError):
            service.runs.begin(record)
        assert service.runs.run_of(record) is None
        assert said == [f"job {record.id}: run 1 begins"]
