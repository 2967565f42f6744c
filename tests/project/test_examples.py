"""Every example runs from an empty directory, says something, and draws no warning of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
TIMEOUT = 120

# `python -W error` would also stop at other libraries' warnings, and its module field does not
# reach submodules; so the filter is set here and the script is run as if from the command line.
RUNNER = """
import os, runpy, sys, warnings
warnings.filterwarnings("error", module=r"vertikal(\\.|$)|__main__$")
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_example(script: Path, directory: Path) -> str:
    """What the script printed; fails when it failed or printed nothing."""
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, str(script)],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip(), f"{script.name} printed nothing"
    return done.stdout


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_example_runs(script, tmp_path):
    run_example(script, tmp_path)


WARN = "import warnings; print('x'); warnings.warn_explicit('w', UserWarning, 'f', 1, module={!r})"


@pytest.mark.parametrize(
    "text",
    [
        "print('x'); raise SystemExit(3)",
        "pass",
        WARN.format("vertikal.kernels"),
        WARN.format("__main__"),
    ],
)
def test_a_bad_example_is_caught(text, tmp_path):
    script = tmp_path / "bad.py"
    script.write_text(text)
    with pytest.raises(AssertionError):
        run_example(script, tmp_path)


def test_other_libraries_may_warn(tmp_path):
    script = tmp_path / "good.py"
    script.write_text(WARN.format("elsewhere"))
    assert run_example(script, tmp_path) == "x\n"
