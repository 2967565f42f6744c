"""Everything works where only the core is installed: numpy loops, from fit to predictions."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from vertikal import FDSKLClassifier

PROGRAM = """
import sys
sys.modules["numba"] = None  # as if it were not installed
import numpy as np
from vertikal import FDSKLClassifier
from vertikal.ring import products
assert type(products.LOOPS).__name__ == "NumpyRingLoops"
generator = np.random.default_rng(0)
X = generator.normal(size=(1000, 6))
y = (X[:, 0] * X[:, 3] > 0).astype(int)
for disclosure in LEVELS:
    model = FDSKLClassifier(3, disclosure=disclosure, **SETTINGS).fit(X, y)
    print(*model.decision_function(X[:50]))
"""
SETTINGS = {
    "n_components": 32,
    "bandwidth": 2.0,
    "loss": "square",
    "alpha": 0.01,
    "max_iter": 60,
    "random_state": 1,
}
LEVELS = (
    "open",
    {"name": "values", "max_passes": 200, "value_bits": 28, "gradient_bits": 28},
    "sealed",
)


def test_every_level_without_numba():
    done = subprocess.run(
        [sys.executable, "-c", f"SETTINGS, LEVELS = {SETTINGS!r}, {LEVELS!r}\n{PROGRAM}"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    generator = np.random.default_rng(0)
    X = generator.normal(size=(1000, 6))
    y = (X[:, 0] * X[:, 3] > 0).astype(int)
    lines = done.stdout.splitlines()
    for disclosure, line in zip(LEVELS, lines, strict=True):
        model = FDSKLClassifier(3, disclosure=disclosure, **SETTINGS).fit(X, y)
        here = model.decision_function(X[:50])
        np.testing.assert_allclose(
            np.array(line.split(), float), here, rtol=0, atol=0.02 * np.abs(here).max()
        )
