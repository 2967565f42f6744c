"""Services whose party file names workers: the same job, the same model."""

from __future__ import annotations

import numpy as np
import pytest

from tests.organisations import RULE, lay_out, write_job
from tests.service_processes import ServiceProcesses

WITH_WORKERS = RULE + "\n[compute]\nworkers = 2\n"
WITH_LINKS = WITH_WORKERS + "direct = true\n"


@pytest.mark.slow
@pytest.mark.parametrize("level", ["open", "values"])
def test_a_job_of_parties_with_workers(tmp_path, level):
    pytest.importorskip("ray", reason="Ray is not installed (extra ray)")
    found = []
    for name, policy in (
        ("threads", RULE),
        ("workers", {"lender": WITH_WORKERS, "bank": WITH_WORKERS, "shop": RULE}),
    ):
        root = tmp_path / name
        lay_out(root, rows=5000, policy=policy)
        extra = ", bits = 64, value_bits = 28, gradient_bits = 28" if level == "values" else ""
        write_job(root, settings=f'disclosure = {{ name = "{level}"{extra} }}', timeout=120)
        world = ServiceProcesses(root)
        try:
            world.start("lender", "bank", "shop")
            world.tell("lender", "job", "submit", "credit.toml")
            world.done()
            found.append(world.model("lender").coefficients)
            if name == "workers":
                audit = (root / "lender" / "store" / "audit.log").read_text()
                assert "2 workers on" in audit
        finally:
            world.stop()
    near = {"rtol": 1e-6} if level == "open" else {"rtol": 1e-2, "atol": 1e-2}
    np.testing.assert_allclose(*found, **near)


@pytest.mark.slow
def test_services_whose_workers_are_linked(tmp_path):
    """The same bits as through the one port; one party does not offer links."""
    pytest.importorskip("ray", reason="Ray is not installed (extra ray)")
    found = []
    for name, policy in (
        ("relayed", {"lender": WITH_WORKERS, "bank": WITH_WORKERS, "shop": RULE}),
        ("linked", {"lender": WITH_LINKS, "bank": WITH_LINKS, "shop": RULE}),
    ):
        root = tmp_path / name
        lay_out(root, rows=5000, policy=policy)
        write_job(root, settings='disclosure = { name = "open" }', timeout=120)
        world = ServiceProcesses(root)
        try:
            world.start("lender", "bank", "shop")
            world.tell("lender", "job", "submit", "credit.toml")
            world.done()
            found.append(world.model("lender").coefficients)
            audit = (root / "bank" / "store" / "audit.log").read_text()
            linked = "phases for lender go from worker to worker" in audit
            assert linked == (name == "linked")
        finally:
            world.stop()
    np.testing.assert_array_equal(*found)
