"""FDSKLClassifier: a federated kernel classifier with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from vertikal.estimators.classes import FederatedClassifier
from vertikal.estimators.federated import FederatedKernelEstimator
from vertikal.party.clock import Observer


class FDSKLClassifier(FederatedClassifier, FederatedKernelEstimator):
    """A kernel classifier trained by several parties that hold different columns of the same rows.

    All parties are simulated in this process; each sees its own columns, and the label parties the
    labels. Several classes are learned one against the rest.

    Parameters
    ----------
    parties : mapping of names to columns, or a number of parties, default 2
        Columns by name (data frames) or number. A number cuts the columns into runs.
    label_parties : names, or a number, default: the first party
        Who holds the labels. Several of them share the coefficients.
    kernel : "gaussian", "laplace", "matern" (3/2), "matern12", "matern32" or "matern52"
    bandwidth : number, "median" or "mean"
        σ of exp(−‖x−x'‖²/2σ²). "median" takes σ² = half the median squared distance of a sample of
        pairs of rows, found by a secure sum; "mean" half their mean, for which the label party sees
        no distance but that.
    n_components : int
        D, the number of random features.
    alpha : number or "auto"
        λ of (1/n) Σ L + λ/2 ‖f‖². "auto" is 0.1/n, what C = 10 means to `SVC`
        and `LogisticRegression`.
    loss : "logistic", "square" or "smooth_hinge"
    solver : "exact" or "dsg"
        "exact" solves the regularised problem on the drawn features to ``tol``; "dsg" is the
        paper's doubly stochastic gradient.
    step_size, steps, samples, features, precondition
        For "dsg": γ, the number of steps (default: each direction once), rows and directions per
        step (1 and 1 are the paper's rule), and whether a block's update is divided by its
        covariance.
    feature_map : "fourier" or "landmarks"
        Random Fourier features, or Nyström's method with ``n_components`` training rows as
        landmarks (Gaussian kernel only): a lower error for the same number, and another disclosure.
    disclosure : "open", "values" or "sealed"
        Who sees the features: "open" shows the summed phases to the label party that owns them;
        "values" shows nobody a phase or a feature, and the label party only f on the training rows
        and the summed gradient in each pass; "sealed" opens nothing but predictions (square loss,
        one label party, ``max_iter`` steps of fixed size).
    helper, dealer : names, or None
        For "values" and "sealed": two parties without labels, by default the first and the last of
        them. A dealer that is not one of the parties takes part without columns.
    hidden_bits : 64 or 32
        For "values": the words in which features are shared. 32 costs half, and rounds f to about
        two decimals. "sealed" takes 64.
    max_passes : int or None
        For "values": how often f of any training row may be opened; None is a quarter of the
        directions.
    value_bits : int from 4 to 28
        For "values": how precisely f of a training row is opened, in bits of full scale; the rest
        is the helper's noise, which cancels over the rows.
    scale : None, "standard", "minmax" or "max"
        Each party's own scaling of its columns, kept in its shard.
    ring_bits : "auto", 8, 16 or 32
        Bits of a phase, or of a distance to a landmark (16 or 32). "auto" is 8, for landmarks 16.
    masking : "pads" or "trees"
        How sums are masked: one-time pads, or the paper's two trees (for reproduction).
    directions : "private" or "shared"
        "shared" is the papers' way and lets a label party undo the others' columns.
    schedule : "sync" or "async"
        For "dsg" with several label parties: they take their steps in turn, or without waiting for
        one another.
    max_staleness, allow_missing
        For "async": how many updates of the others a party may miss between reading and writing,
        and whether the others may finish without a label party that vanishes.
    cache_size : bytes, a text like "2GB", or None
        How many bytes of phases a label party may keep; rows beyond are summed again in each pass.
    tol, max_iter
        When the exact solver stops; sealed, how many steps it takes.
    timeout : seconds
        How long any party waits for a message of another.
    random_state : int, RandomState or None
        Fixes the model, for tests and simulation (pads are fresh in every run and cancel). With
        None the parties' secrets come from the operating system.
    verbose : 0, 1 or an observer
    class_weight : None, "balanced" or a mapping of classes to weights

    Attributes
    ----------
    classes_ : the class labels
    ledger_ : who received what, how much, and what it can learn from it
    report_ : seconds and bytes by stage and party (`report_.seconds`, `report_.bytes_sent`)
    shards_ : what each party keeps of the model, by name
    bandwidth_, alpha_, n_iter_, objective_, columns_, settings_

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vertikal import FDSKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = FDSKLClassifier(parties=3, scale="standard", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        parties: int | Mapping[str, Any] = 2,
        *,
        label_parties: int | str | list[str] | tuple[str, ...] | None = None,
        kernel: str = "gaussian",
        bandwidth: float | Literal["median", "mean"] = "median",
        n_components: int = 2048,
        alpha: float | Literal["auto"] = "auto",
        loss: str = "logistic",
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
        class_weight: Mapping[Any, float] | str | None = None,
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
        self.class_weight = class_weight
