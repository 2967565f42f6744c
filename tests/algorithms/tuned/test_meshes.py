"""The tuned kernel machine on every mesh: the same model, whatever carries its messages."""

from __future__ import annotations

import numpy as np
import pytest

from tests.algorithms.tuned.runs import (
    NAMES,
    classes_of,
    columns_of,
    predicted,
    settings_of,
    trained,
)
from tests.conformance.meshes import connected, every_mesh

TABLES = columns_of(120)
Y = classes_of(TABLES)
SETTINGS = settings_of(n_components=24)


@pytest.fixture(scope="module")
def in_threads():
    shards, _ = trained(TABLES, Y, SETTINGS)
    return shards, predicted(TABLES, shards, SETTINGS)


@every_mesh
def test_every_mesh_gives_the_same_model(factory, in_threads):
    expected, f = in_threads
    with connected(factory, NAMES) as ends:
        shards, _ = trained(TABLES, Y, SETTINGS, meshes=ends)
        found = predicted(TABLES, shards, SETTINGS, meshes=ends)
    assert shards["bank"].trials == expected["bank"].trials
    for mine, theirs in zip(shards["bank"].blocks, expected["bank"].blocks, strict=True):
        np.testing.assert_array_equal(mine.coefficients, theirs.coefficients)
    for name in NAMES:
        np.testing.assert_array_equal(shards[name].relevance, expected[name].relevance)
    np.testing.assert_array_equal(found, f)
