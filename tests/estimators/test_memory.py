"""Memory of fits: what was large in one is gone when it ends, without the garbage collector."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

from vertikal import AVFKAMClassifier, FDSKLClassifier, KernelClassifier
from vertikal.reused_memory import reused_memory

ROWS, WIDTH = 4000, 1024
MATRIX = ROWS * WIDTH  # bytes of the phases alone; hidden levels keep four and eight times as many
X = np.random.default_rng(0).normal(size=(ROWS, 6))
Y = (X[:, 0] * X[:, 3] > 0).astype(int)
PLAIN = {"n_components": WIDTH, "random_state": 0}


@pytest.fixture
def without_collector():
    gc.collect()
    gc.disable()
    yield
    tracemalloc.stop()
    gc.enable()


@pytest.mark.parametrize(
    "model",
    [
        FDSKLClassifier(3, **PLAIN),
        FDSKLClassifier(3, label_parties=2, **PLAIN),
        FDSKLClassifier(3, disclosure="values", max_iter=3, tol=0.1, **PLAIN),
        FDSKLClassifier(3, disclosure="sealed", loss="square", max_iter=3, **PLAIN),
        AVFKAMClassifier(3, **PLAIN),
        pytest.param(KernelClassifier(3, random_state=0), marks=pytest.mark.slow),
    ],
    ids=["open", "two label parties", "values", "sealed", "ranking", "tuned"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("without_collector")
def test_no_matrix_outlives_its_fit(model):
    model.fit(X[:200], Y[:200])  # modules and compiled loops stay
    reused_memory.let_go()
    tracemalloc.start()
    model.fit(X, Y)
    reused_memory.let_go()
    assert tracemalloc.get_traced_memory()[0] < MATRIX / 2
