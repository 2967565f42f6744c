"""The view of somebody who had all columns in one place: blocks, features and predictions.

A fitted estimator gives shards and the assignment of columns; all else is computed plainly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.naive.phases import features, summed_phases


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
    """Φ (rows, features), the label parties' blocks side by side; Φ·Φᵀ approximates the kernel."""
    phases, chosen = pooled_phases(model, X), model.settings_.feature_map
    blocks = [features(p, chosen.functions, chosen.harmonics) for p in phases.values()]
    return np.hstack(blocks) / math.sqrt(model.settings_.n_components)


def pooled_coefficients(model: Any) -> np.ndarray:
    """α (features, outputs), put together from all label parties' shards."""
    return np.vstack([model.shards_[o].coefficients for o in model.settings_.label_parties])


def pooled_prediction(model: Any, X: Any) -> np.ndarray:
    """f of each row (rows, outputs), computed in one place."""
    leader = model.shards_[model.settings_.label_parties[0]]
    f = pooled_features(model, X) @ pooled_coefficients(model)
    return f * leader.unit + leader.constant
