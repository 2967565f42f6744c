"""Directions drawn by several threads are those of the kernel, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.compute import drawing
from vertikal.compute.drawing import draw_in_threads
from vertikal.kernels.spectral import KERNELS


@pytest.mark.parametrize("columns", [0, 1, 7])
@pytest.mark.parametrize("name", KERNELS)
def test_cutting_changes_no_direction(monkeypatch, name, columns):
    monkeypatch.setattr(drawing, "TASK", 60)
    kernel, generator = KERNELS[name], np.random.default_rng(0)
    uniforms, common = generator.random((columns, 30)), generator.random(30)
    scalars = kernel.shared_scalars(common)
    found = draw_in_threads(kernel, uniforms, scalars, 1.7)
    np.testing.assert_array_equal(found, kernel.directions(uniforms, scalars) / 1.7)
