"""The view of somebody who had all columns in one place: blocks, features and predictions.

A fitted estimator gives shards and the assignment of columns; all else is computed plainly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.naive.phases import cosines, summed_phases


def blocks_of(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Each party's columns of pooled rows X."""
    return {party: np.asarray(X)[:, columns] for party, columns in model.columns_.items()}


def pooled_phases(model: Any, X: Any) -> dict[str, np.ndarray]:
    """(rows, width) by label party."""
    blocks = blocks_of(model, X)
    return {
        owner: summed_phases(model.shards_, blocks, owner, model.masking)
        for owner in model.settings_.label_parties
    }


def pooled_features(model: Any, X: Any) -> np.ndarray:
    """Φ (rows, D), the label parties' directions side by side; Φ·Φᵀ approximates the kernel."""
    phases = pooled_phases(model, X)
    return np.hstack([cosines(p) for p in phases.values()]) / math.sqrt(
        model.settings_.n_components
    )


def pooled_coefficients(model: Any) -> np.ndarray:
    """α (D, outputs), put together from all label parties' shards."""
    return np.vstack([model.shards_[o].coefficients for o in model.settings_.label_parties])


def pooled_prediction(model: Any, X: Any) -> np.ndarray:
    """f of each row (rows, outputs), computed in one place."""
    leader = model.shards_[model.settings_.label_parties[0]]
    f = pooled_features(model, X) @ pooled_coefficients(model)
    return f * leader.unit + leader.constant
