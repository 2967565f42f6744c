"""Workers and nodes that are lost, stores that are full: a fit goes on, and gives the same model.

The clusters of these tests are their own, in a process of its own: a process has one connection.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.compute.workers.killing import kill
from vertikal.compute.workers.cluster import Workers
from vertikal.compute.workers.sharded_table import ShardedTable
from vertikal.compute.workers.spread_operator import SpreadStore
from vertikal.compute.workers.worker_group import WorkerGroup
from vertikal.data.tables import Table
from vertikal.errors import InputError, WorkerLost
from vertikal.kernels.random_features import FourierMap
from vertikal.ring.integers import Ring

FIT = """
import json, os, sys, tempfile, threading, warnings
import numpy as np
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
from ray.cluster_utils import Cluster
from vertikal import FDSKLClassifier, Workers

warnings.simplefilter("ignore")
kind, direct = sys.argv[1], sys.argv[2] == "links"
generator = np.random.default_rng(0)
X = generator.normal(size=(60_000, 6))
y = X[:, 0] * X[:, 4] > 0
shared = dict(n_components=128, random_state=0, scale="standard", max_iter=12)
before = FDSKLClassifier(**shared).fit(X, y)
cluster = None
if kind == "store":
    spilled = tempfile.mkdtemp()
    ray.init("local", num_cpus=4, object_store_memory=80 << 20, include_dashboard=False,
             object_spilling_directory=spilled)
    workers = Workers(count=2)
    # Most of the store is taken: phases and tables go to the disk.
    taken = [ray.put(np.ones(9 << 20, np.uint8)) for _ in range(8)]
else:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    # As many places as there are workers of both parties: each node has two of them.
    nodes = [cluster.add_node(num_cpus=2) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False)
    workers = Workers(count=2, address=cluster.address, cpus=1, direct=direct)
notes, stages = [], []
reached, lost = threading.Event(), threading.Event()

class Watch:
    def begin(self, party, stage, total):
        stages.append((party, stage))
    def advance(self, party, stage, amount, note):
        if "worker" in note or "links" in note:
            notes.append(note)
        if stage == kind and amount and party == "party1":
            reached.set()
            lost.wait(100)
    def end(self, party, stage, seconds):
        pass

after = FDSKLClassifier(workers=workers, verbose=Watch(), **shared)
fitting = threading.Thread(target=after.fit, args=(X, y))
fitting.start()
if cluster is not None:
    # Ray adds nodes in the main thread only.
    assert reached.wait(200)
    # All of them, whichever nodes Ray gave to the label party: those of others may be done.
    for _ in nodes:
        cluster.add_node(num_cpus=2)
    for node in nodes:
        cluster.remove_node(node, allow_graceful=False)
    lost.set()
fitting.join()
found, expected = (one.decision_function(X[:2000]) for one in (after, before))
# Sums in single precision are added in another order.
far = np.abs(found - expected).max() / np.abs(expected).max()
store = sum(len(files) for _, _, files in os.walk(spilled)) if kind == "store" else 0
print(json.dumps({"far": float(far), "notes": notes, "store": store,
                  "iterations": [before.n_iter_, after.n_iter_]}))
ray.shutdown()
if cluster is not None:
    cluster.shutdown()
"""


def run_fit(kind, links="no links"):
    done = subprocess.run(
        [sys.executable, "-c", FIT, kind, links],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    # Ray prints what it has lost, before it and after it.
    (line,) = (one for one in done.stdout.splitlines() if one.startswith('{"far"'))
    return json.loads(line)


@pytest.mark.slow
@pytest.mark.parametrize("links", ["no links", "links"])
@pytest.mark.parametrize("stage", ["phases", "solve"])
def test_a_fit_goes_on_without_nodes_that_are_lost(stage, links):
    found = run_fit(stage, links)
    assert found["far"] < 1e-4
    assert found["iterations"][0] == found["iterations"][1]
    lost = [note for note in found["notes"] if "was lost" in note]
    assert lost, found["notes"]
    assert all("worker" in note and " of party" in note for note in lost)
    assert any("from worker to worker" in note for note in found["notes"]) == (links == "links")


@pytest.mark.slow
def test_a_full_store_goes_to_the_disk():
    found = run_fit("store")
    assert found["far"] < 1e-4
    assert found["store"] > 0


def test_a_worker_that_is_lost_again_and_again_ends_the_run(group):
    table = ShardedTable.sent(group, Table("a", ("x",), np.zeros((5000, 1))))
    for _ in range(2):
        kill(group, 0)
        table.block(np.arange(5))
    kill(group, 0)
    with pytest.raises(WorkerLost, match=r"worker 1 of 2 of a.* was lost, and so were 2 before it"):
        table.block(np.arange(5))


@pytest.mark.slow
def test_a_worker_without_a_place_is_named(ray):
    group = WorkerGroup(Workers(count=1, gpus=64, patience=2.0), "a")
    with pytest.raises(WorkerLost, match=r"worker 1 of 1 of a has found no place .*'num_gpus': 64"):
        group.ask(0, "sizes").answer()
    group.close()


def test_no_cluster_answers(monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed (extra ray)")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def refuse(**_):
        raise ConnectionError("nobody there")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(InputError, match=r"no Ray cluster at '10\.0\.0\.1:6379': nobody there"):
        WorkerGroup(Workers(address="10.0.0.1:6379"), "a").store(1)


def test_the_next_run_uses_the_workers_that_are_left(in_process):
    kinds = [Workers(count=2), Workers(count=2), Workers(count=2, cpus=3), Workers(count=2)]
    for number, workers in enumerate(kinds):
        group = WorkerGroup(workers, "a")
        # Nothing of the run before is left.
        assert group.ask_all("sizes") == [{}, {}]
        assert group.lost == 0
        assert len(in_process.actors) == [2, 2, 4, 5][number]
        store = SpreadStore(group, FourierMap(Ring(8), np.zeros((1, 2)), np.zeros(2), 2), 5000)
        assert [[*held] for held in group.ask_all("sizes")] == [[store.name]] * 2
        if number == 2:
            # One that has died meanwhile is not used, and not counted as lost.
            in_process.actors[0].end()
        group.close()
    assert len(in_process.actors) == 5


def test_workers_of_a_cluster_of_others_end_with_their_run(in_process):
    group = WorkerGroup(Workers(count=2, address="auto"), "a")
    group.ask_all("sizes")
    group.close()
    assert [actor.made for actor in in_process.actors] == [None, None]
