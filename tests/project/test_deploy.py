"""The unit and the Containerfile in `deploy/`, checked by their own tools where these are there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from vertikal.cli import main

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "vertikal@.service"
CONTAINERFILE = ROOT / "deploy" / "Containerfile"


def installed(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


@pytest.fixture
def unit(tmp_path):
    """The unit of one party, with a program and a user that this machine has."""
    text = UNIT.read_text(encoding="utf-8")
    text = re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", text, flags=re.M)
    text = re.sub(r"^(User|Group)=.*", r"\1=root", text, flags=re.M)
    path = tmp_path / "vertikal@bank.service"
    path.write_text(text)
    return path


def analyze(*arguments):
    return subprocess.run(
        [installed("systemd-analyze"), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_systemd_takes_the_unit(unit):
    done = analyze("verify", str(unit))
    assert done.returncode == 0, done.stderr
    assert "vertikal@bank" not in done.stderr
    unit.write_text(unit.read_text().replace("Type=exec", "Type=whatever"))
    assert "service type" in analyze("verify", str(unit)).stderr


def test_the_unit_leaves_the_service_little(unit):
    done = analyze("security", "--offline=yes", "--no-pager", "--threshold=20", str(unit))
    assert "exposure level" in done.stdout, done.stderr
    assert done.returncode == 0, done.stdout[-200:]


def test_hadolint_has_nothing_to_say():
    done = subprocess.run(
        [installed("hadolint"), str(CONTAINERFILE)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def instructions() -> list[tuple[str, str]]:
    """(instruction, arguments) of the Containerfile, continuation lines joined."""
    text = re.sub(r"^#.*\n", "", CONTAINERFILE.read_text(encoding="utf-8"), flags=re.M)
    lines = text.replace("\\\n", " ").splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]


def test_what_is_copied_is_there_and_not_ignored():
    ignored = (ROOT / ".containerignore").read_text(encoding="utf-8").splitlines()
    for name, words in instructions():
        if name == "COPY" and "--from" not in words:
            for source in words.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in ignored


def test_the_service_is_not_root_and_its_commands_exist():
    found = instructions()
    (user,) = [words for name, words in found if name == "USER"]
    assert user.split(":")[0].isdigit()
    assert int(user.split(":")[0]) > 0
    told = [words for name, words in found if name in ("CMD", "HEALTHCHECK")]
    for words in told:
        command = re.findall(r'"([^"]*)"', words)
        command = [one for one in command if one != "vertikal" and not one.startswith("/")]
        assert CliRunner().invoke(main, [*command, "--help"]).exit_code == 0
    assert len(told) == 2
