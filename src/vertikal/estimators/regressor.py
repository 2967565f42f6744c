"""FDSKLRegressor: federated kernel regression with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from vertikal.estimators.federated import FederatedKernelEstimator
from vertikal.party.clock import Observer

Array = npt.NDArray[Any]


class FDSKLRegressor(RegressorMixin, FederatedKernelEstimator):
    """Kernel regression trained by several parties that hold different columns of the same rows.

    Parameters and attributes are those of `FDSKLClassifier`, without classes; the loss is "square".
    The label parties standardise the targets, and predictions come back in the targets' own unit.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from vertikal import FDSKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = FDSKLRegressor(parties=2, scale="standard", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    _regression = True

    def __init__(
        self,
        parties: int | Mapping[str, Any] = 2,
        *,
        label_parties: int | str | list[str] | tuple[str, ...] | None = None,
        kernel: str = "gaussian",
        bandwidth: float | Literal["median", "mean"] = "median",
        n_components: int = 2048,
        alpha: float | Literal["auto"] = "auto",
        loss: str = "square",
        solver: str = "exact",
        step_size: float | Literal["auto"] = "auto",
        steps: int | None = None,
        samples: int = 64,
        features: int = 64,
        precondition: bool = False,
        feature_map: str = "fourier",
        disclosure: str = "open",
        helper: str | None = None,
        dealer: str | None = None,
        hidden_bits: int = 64,
        max_passes: int | None = None,
        value_bits: int = 6,
        scale: str | None = None,
        ring_bits: int | Literal["auto"] = "auto",
        masking: str = "pads",
        directions: str = "private",
        schedule: str = "sync",
        max_staleness: int = 256,
        allow_missing: bool = False,
        cache_size: int | str | None = None,
        tol: float = 1e-3,
        max_iter: int = 200,
        timeout: float = 300.0,
        random_state: Any = None,
        verbose: int | bool | Observer = 0,
    ) -> None:
        super().__init__(
            parties,
            label_parties=label_parties,
            kernel=kernel,
            bandwidth=bandwidth,
            n_components=n_components,
            alpha=alpha,
            loss=loss,
            solver=solver,
            step_size=step_size,
            steps=steps,
            samples=samples,
            features=features,
            precondition=precondition,
            feature_map=feature_map,
            disclosure=disclosure,
            helper=helper,
            dealer=dealer,
            hidden_bits=hidden_bits,
            max_passes=max_passes,
            value_bits=value_bits,
            scale=scale,
            ring_bits=ring_bits,
            masking=masking,
            directions=directions,
            schedule=schedule,
            max_staleness=max_staleness,
            allow_missing=allow_missing,
            cache_size=cache_size,
            tol=tol,
            max_iter=max_iter,
            timeout=timeout,
            random_state=random_state,
            verbose=verbose,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X (rows, columns) and targets y."""
        X, y = self._validate(X, y, reset=True)
        self._fit(X, y, self._weights(sample_weight, X), np.asarray(y, np.float64)[:, None])
        return self

    def predict(self, X: Any) -> Array:
        """The target of each row."""
        return self._decide(X)[:, 0]
