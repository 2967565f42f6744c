"""The same model and the same messages, whatever the number of a party's cores."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal import FDSKLClassifier, Landmarks
from vertikal.algorithms.kernel_machine import phases, values

GENERATOR = np.random.default_rng(5)
X = GENERATOR.normal(size=(700, 9))
Y = X[:, 0] * X[:, 4] > 0

MODELS = {
    "open": lambda: FDSKLClassifier(3, n_components=32, random_state=0),
    "a small cache": lambda: FDSKLClassifier(
        3, n_components=32, random_state=0, cache_size=300 * 32, max_iter=4
    ),
    "landmarks": lambda: FDSKLClassifier(
        3, n_components=32, random_state=0, feature_map=Landmarks()
    ),
    "values": lambda: FDSKLClassifier(3, n_components=32, random_state=0, disclosure="values"),
    "label parties": lambda: FDSKLClassifier(
        3, n_components=32, random_state=0, label_parties=2, max_iter=4
    ),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_core_and_many(monkeypatch, kind):
    for room in (phases, values):
        monkeypatch.setattr(room, "BLOCK_BYTES", 2000)  # some sixty rows, so that there are many
    fitted = []
    for count in (1, 24):
        for module in ("vertikal.side_by_side", "vertikal.compute.place"):
            monkeypatch.setattr(f"{module}.cores", lambda count=count: count)
        fitted.append(MODELS[kind]().fit(X, Y))
    values_of = [model.decision_function(X) for model in fitted]
    if kind == "values":  # opened under fresh noise, so that no two fits are alike
        assert np.corrcoef(*values_of)[0, 1] > 0.98
    else:
        np.testing.assert_array_equal(*values_of)
    sent = [
        {name: stage.bytes_sent for name, stage in model.report_.stages["phases"].items()}
        for model in fitted
    ]
    assert sent[0] == sent[1]
