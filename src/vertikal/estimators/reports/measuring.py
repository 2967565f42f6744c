"""Measures of a fitted estimator on rows that it was not fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_consistent_length, column_or_1d

from vertikal.errors import InputError
from vertikal.metrics.measures import Measures, measure_classes, measure_numbers


def measure_estimator(estimator: Any, X: Any, y: Any) -> Measures:
    """Measure predictions of rows X against their y, as an evaluation of a job does."""
    if y is None:
        raise InputError.of("y", "given with X: what came true of its rows", None)
    check_consistent_length(X, y)
    truth = column_or_1d(y)
    if not is_classifier(estimator):
        return measure_numbers(np.asarray(estimator.predict(X)), np.asarray(truth, np.float64))
    classes = estimator.classes_
    strange = sorted({str(one) for one in truth} - {str(one) for one in classes})
    if strange:
        raise InputError.of("y", f"some of the classes {classes.tolist()}", strange[0])
    places = np.array([classes.tolist().index(one) for one in np.asarray(truth).tolist()])
    scores = np.asarray(estimator.decision_function(X))
    scores = scores[:, None] if scores.ndim == 1 else scores
    try:
        chances = estimator.predict_proba(X)
    except (AttributeError, InputError):
        # It estimates none: with this loss, or since nothing was opened to calibrate on.
        chances = None
    called = (scores[:, 0] > 0).astype(np.int64) if len(classes) == 2 else scores.argmax(axis=1)
    return measure_classes(scores, places, tuple(map(str, classes.tolist())), called, chances)
