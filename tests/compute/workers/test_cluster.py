"""The start of a cluster on this machine: one at a time."""

from __future__ import annotations

import os
import tempfile
import threading

from vertikal.compute.workers import cluster


def test_two_clusters_do_not_start_at_the_same_time(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    entered, may_leave, order = threading.Event(), threading.Event(), []

    def first():
        with cluster.alone_on_this_machine():
            entered.set()
            may_leave.wait(10)
            order.append("first")

    def second():
        with cluster.alone_on_this_machine():
            order.append("second")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert entered.wait(10)
    threads[1].start()
    threads[1].join(0.3)
    assert order == []
    may_leave.set()
    for thread in threads:
        thread.join(10)
    assert order == ["first", "second"]


def test_a_cluster_starts_although_another_takes_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cluster, "STARTING", 0.1)
    with cluster.alone_on_this_machine(), cluster.alone_on_this_machine():
        pass
    # Also where the file is not to be had.
    (tmp_path / f"vertikal-ray-{os.getuid()}.lock").unlink()
    (tmp_path / f"vertikal-ray-{os.getuid()}.lock").symlink_to(tmp_path / "elsewhere")
    with cluster.alone_on_this_machine():
        pass
    assert not (tmp_path / "elsewhere").exists()
