"""An asynchronous job as real processes over TLS: it ends, and goes on without a killed party."""

from __future__ import annotations

import signal
import subprocess

import numpy as np
import pytest

from tests.end_to_end.test_processes import COMMAND, end_all, said, start_party, wait_for
from tests.ports import free_port
from vertikal.algorithms.kernel_machine.algorithm import AVFKAM
from vertikal.node.config.federation_file import entry_of
from vertikal.node.runs.workplaces import models_in
from vertikal.secure.keys.identity import Identity

NAMES = ("bank", "shop", "clinic", "port")
JOB = """
algorithm = "avfkam"
secret_seed = 1
timeout = {timeout}
[settings]
n_components = 96
scale = "standard"
[settings.solver]
name = "dsg"
block_size = 16
n_steps = {steps}
{more}
[parties.bank]
table = "bank.csv"
label = "y"
[parties.shop]
table = "shop.csv"
label = "y"
[parties.clinic]
table = "clinic.csv"
label = "y"
[parties.port]
table = "port.csv"
"""


@pytest.fixture
def folder(tmp_path):
    """Tables, identities and a federation file; all but the port hold labels."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 8))
    y = (X[:, 0] * X[:, 4] > 0.3).astype(int)
    entries = []
    for i, name in enumerate(NAMES):
        block, titles = X[:, 2 * i : 2 * i + 2], "u,v"
        if name != "port":
            block, titles = np.column_stack((block, y)), "u,v,y"
        np.savetxt(tmp_path / f"{name}.csv", block, "%.17g", ",", header=titles, comments="")
        identity = Identity.create(name)
        identity.save(tmp_path / f"{name}.key", tmp_path / f"{name}.crt")
        entries.append(entry_of(identity, f"127.0.0.1:{free_port()}" if name == "bank" else None))
    (tmp_path / "federation.toml").write_text("\n".join(entries))
    return tmp_path


def stored(folder, name):
    return models_in(folder / "out", name).load("job", AVFKAM).shard


@pytest.mark.slow
def test_a_job_of_four_processes(folder):
    (folder / "job.toml").write_text(JOB.format(timeout=60, steps=60, more=""))
    done = subprocess.run(
        [*COMMAND, "run", str(folder / "job.toml"), "--out", str(folder / "out")],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shards = {name: stored(folder, name) for name in NAMES}
    assert shards["port"].coefficients is None
    assert 60 <= sum(sum(s.training.staleness.values()) for s in shards.values()) < 66
    assert shards["bank"].settings.validation == 0.1
    assert shards["bank"].training.moments


@pytest.mark.slow
def test_the_others_finish_without_a_killed_label_party(folder):
    """A broken link is given up after 30 seconds; then the others finish."""
    more = "allow_missing = true\nstep_size = 0.01"
    (folder / "job.toml").write_text(JOB.format(timeout=120, steps=2000, more=more))
    children = {name: start_party(folder, name) for name in NAMES}
    try:
        wait_for(children["shop"], '"stage":"solve","done":[1-9]')
        children["shop"].send_signal(signal.SIGKILL)
        for name in ("bank", "clinic", "port"):
            code, errors = said(children[name], 240)
            assert code == 0, f"{name}: {errors}"
    finally:
        end_all(children)
    for name in ("bank", "clinic"):
        shard = stored(folder, name)
        assert shard.training.missing == ("shop",)
        assert shard.coefficients is not None
    # What the killed party had written before is good for its columns in predictions.
    assert stored(folder, "shop").coefficients is None
