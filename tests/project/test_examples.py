"""Every example runs from an empty directory, says something, and draws no warning of ours."""

from __future__ import annotations

import contextlib
import io
import runpy
import warnings
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def run_example(script: Path, directory: Path) -> str:
    """Return what the script printed; fail when it failed or printed nothing.

    It runs as if from the command line, in a namespace of its own, but in this process: loading the
    libraries takes longer than most examples.
    """
    printed = io.StringIO()
    with (
        warnings.catch_warnings(),
        contextlib.chdir(directory),
        contextlib.redirect_stdout(printed),
    ):
        # Other libraries may warn.
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", module=r"vertikal(\.|$)|__main__$")
        try:
            runpy.run_path(str(script), run_name="__main__")
        except (Exception, SystemExit) as error:
            raise AssertionError(f"{script.name} failed: {error!r}") from error
    assert printed.getvalue().strip(), f"{script.name} printed nothing"
    return printed.getvalue()


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
