"""The federation of `vertikal demo --console`: its files are good, and it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request

import pytest

from vertikal.demo.federation import FIRST, NAMES, WAITING, lay_out
from vertikal.node.approval.table_check import check_tables
from vertikal.node.config.federation_file import FederationFile
from vertikal.node.config.job_file import Job
from vertikal.node.config.party_file import PartyFile


def test_what_is_laid_out_can_be_used(tmp_path):
    lay_out(tmp_path, 200, 0)
    for name in NAMES:
        file = PartyFile.load(tmp_path / name / "party.toml")
        (found,) = check_tables(file, tmp_path / name)
        assert (found.rows, found.problems) == (190, ())
        assert FederationFile.load(tmp_path / name / "federation.toml").names == NAMES
    for job in (FIRST, WAITING):
        content = Job.load(tmp_path / "lender" / f"{job}.toml")
        content.check_for_services()
        assert content.leader == "lender"


@pytest.mark.slow
def test_the_demo_prints_a_link_to_each_party_and_ends_them(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-m", "vertikal", "demo", "--console", "--rows", "400"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        assert process.stdout is not None
        links = {}
        for line in process.stdout:
            name, _, rest = line.strip().partition(" ")
            if name in NAMES:
                links[name] = rest.split()[0]
            if "Ctrl-C" in line:
                break
        assert set(links) == set(NAMES)
        with urllib.request.urlopen(links["bank"], timeout=60) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 130
    assert list(tmp_path.iterdir()) == []
