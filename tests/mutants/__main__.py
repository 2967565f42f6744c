"""Try the mutants, and say which of them no test of the paper map notices.

python -m tests.mutants            # all of them, some minutes
python -m tests.mutants barrier    # those whose name contains a word
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.mutants import MUTANTS, ROOT, SOURCE, Mutant
from tests.project.test_paper_map import rows_of

PATIENCE = 600
"""Seconds after which a run of tests counts as failed: a wrong loop may never end."""
FAILED = 1
"""pytest's exit status if tests ran and some failed."""


def main() -> int:
    """Try the chosen mutants; return 1 if one survives or could not be tried."""
    words = sys.argv[1:]
    chosen = [one for one in MUTANTS if all(word in one.name for word in words)]
    tests = named_tests()
    left = []
    began = time.monotonic()
    for place, mutant in enumerate(chosen, 1):
        verdict = attempt(mutant, tests[mutant.function])
        if verdict != "noticed":
            left.append(f"{verdict}: {mutant.name}")
        spent = time.monotonic() - began
        ahead = spent / place * (len(chosen) - place)
        print(f"{place}/{len(chosen)} {verdict}: {mutant.name} ({ahead:.0f} s left)", flush=True)
    print("\n".join(left) or f"all {len(chosen)} were noticed")
    return int(bool(left))


def named_tests() -> dict[str, list[str]]:
    """The tests that the map names for each function."""
    found: dict[str, list[str]] = {}
    for row in rows_of((ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")):
        function = re.fullmatch(r"`vertikal\.([\w.]+)`", row.function)
        if function:
            found.setdefault(function[1], []).extend(re.findall(r"`([^`]+)`", row.test))
    return found


def attempt(mutant: Mutant, tests: list[str]) -> str:
    """Run these tests on a copy of the package that has this one wrong in it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        path = copy / mutant.file
        path.write_text(path.read_text(encoding="utf-8").replace(mutant.old, mutant.new, 1))
        given = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", "", *dict.fromkeys(tests)]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *given],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"},
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "noticed"
    if done.returncode == FAILED:
        return "noticed"
    return "survived" if done.returncode == 0 else f"broken ({done.returncode})"


if __name__ == "__main__":
    raise SystemExit(main())
