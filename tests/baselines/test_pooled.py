"""The pooled kernel machine: the same numbers as its parts, and as a federation of one process."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import laplacian_kernel

from vertikal import FDSKLClassifier
from vertikal.baselines import PooledKernelClassifier
from vertikal.baselines.pooled_features import CosineMap, Draw, gather, phase_map
from vertikal.data.scaling import learn_scaling
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.kernels.spectral import kernel_named

FORMS = [{"features": "phases", "ring_bits": bits} for bits in (8, 16, 32)]
FORMS += [{"features": "float32"}]


def table(X: Any) -> Table:
    return Table("pooled", tuple(f"column {i}" for i in range(X.shape[1])), X)


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("gaussian", RBF(1.5)),
        ("laplace", lambda X: laplacian_kernel(X, gamma=1 / 1.5)),
        ("matern", Matern(1.5, nu=1.5)),
    ],
)
@pytest.mark.parametrize("form", ["phases", "float32"])
def test_features_approximate_the_kernel(name: str, exact: Any, form: str) -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    scaling = learn_scaling(table(X), None)
    draw = Draw.of(kernel_named(name), 3, 8192, 1.5, seed=1)
    made = phase_map(draw, scaling, 16) if form == "phases" else CosineMap(draw, scaling)
    features = made.decode(made.local(X), np.float64)
    error = features @ features.T - exact(X)
    assert abs(error.mean()) < 0.01
    assert np.abs(error).max() < 0.08


@pytest.mark.parametrize("scale", [None, "standard", "minmax", "max"])
def test_the_two_forms_are_the_same_features(scale: str | None) -> None:
    X = np.random.default_rng(0).gamma(2.0, 3.0, (500, 5))
    scaling = learn_scaling(table(X), scale)
    draw = Draw.of(kernel_named("gaussian"), 5, 64, 4.0, seed=1)
    made = phase_map(draw, scaling, 32)
    phases = made.decode(made.local(X), np.float64)
    floats = CosineMap(draw, scaling).local(X)
    assert floats.dtype == np.float32
    np.testing.assert_allclose(phases, floats, atol=2e-6)
    flat = CosineMap(draw, scaling).local(sparse.csr_array(X))
    np.testing.assert_allclose(phases, flat, atol=2e-6)


@pytest.mark.parametrize("shape", [(300, 7), (2100, 2050)], ids=["small", "large"])
def test_the_operator_of_plain_cosines_multiplies(shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((shape[0], 3))
    draw = Draw.of(kernel_named("gaussian"), 3, shape[1], 2.0, seed=0)
    made = CosineMap(draw, learn_scaling(table(X), None))
    matrix, operator = made.local(X), gather(made, table(X))
    a, r = generator.standard_normal((shape[1], 2)), generator.standard_normal((shape[0], 2))
    some, part = np.array([5, 1, 250]), slice(2, 6)
    assert (operator.rows, operator.width) == shape
    close = {"rtol": 0, "atol": 2e-3}
    np.testing.assert_allclose(operator.forward(a), matrix @ a, **close)
    np.testing.assert_allclose(operator.adjoint(r), matrix.T @ r, **close)
    np.testing.assert_allclose(
        operator.forward(a[part], some, part), matrix[some, part] @ a[part], **close
    )
    np.testing.assert_allclose(
        operator.adjoint(r[:3], some, part), matrix[some, part].T @ r[:3], **close
    )
    weights = generator.random(3)
    gram = matrix[some, part].T @ (weights[:, None] * matrix[some, part])
    np.testing.assert_allclose(operator.gram(some, weights, part), gram, **close)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form.values())))
def test_all_forms_learn_the_same(form: dict[str, Any]) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = PooledKernelClassifier(scale="standard", random_state=0, **form).fit(X[::2], y[::2])
    twin = PooledKernelClassifier(scale="standard", random_state=0, ring_bits=32)
    twin.fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.93
    gap = model.predict_proba(X[1::2]) - twin.predict_proba(X[1::2])
    assert np.abs(gap).max() < 0.02
    assert set(model.seconds_) == {"prepare", "bandwidth", "features", "solve"}
    assert model.objective_[-1] < model.objective_[0]
    assert model.n_iter_ + 1 == len(model.objective_) == len(model.gradient_)


def test_more_rows_than_the_preconditioner_uses() -> None:
    X, y = make_moons(6000, noise=0.2, random_state=0)
    for form in ("phases", "float32"):
        model = PooledKernelClassifier(n_components=128, features=form, random_state=0)
        assert model.fit(X, y).score(X, y) > 0.95


@pytest.mark.slow
def test_a_federation_reaches_the_same_objective() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    fixed = {"scale": "standard", "bandwidth": 6.0, "n_components": 4096, "random_state": 0}
    pooled = PooledKernelClassifier(**fixed).fit(X[::2], y[::2])
    federated = FDSKLClassifier(3, **fixed).fit(X[::2], y[::2])
    assert pooled.alpha_ == federated.alpha_
    assert pooled.objective_[0] == pytest.approx(federated.objective_[0], rel=1e-9)
    assert pooled.objective_[-1] == pytest.approx(federated.objective_[-1], rel=0.02)
    scores = [roc_auc_score(y[1::2], m.decision_function(X[1::2])) for m in (pooled, federated)]
    assert abs(scores[0] - scores[1]) < 0.01


@pytest.mark.parametrize("bandwidth", ["mean", "median"])
def test_the_bandwidth_is_the_federations_own(bandwidth: Literal["mean", "median"]) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:60], y[:60]  # few enough rows that all pairs are used, whatever the seed
    ours = PooledKernelClassifier(bandwidth=bandwidth, scale="standard", random_state=0)
    theirs = FDSKLClassifier(3, bandwidth=bandwidth, scale="standard", random_state=5)
    pooled, federated = ours.fit(X, y), theirs.fit(X, y)
    assert pooled.bandwidth_ == pytest.approx(federated.bandwidth_, rel=1e-9)


def test_several_classes() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = PooledKernelClassifier(scale="standard", random_state=0).fit(X, names)
    assert model.decision_function(X).shape == (150, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.score(X, names) > 0.9


@pytest.mark.parametrize(
    ("parameter", "value", "allowed"),
    [
        ("features", "float16", "one of 'phases', 'float32'"),
        ("ring_bits", 64, "one of 8, 16, 32"),
        ("scale", "unit", "one of 'standard', 'minmax', 'max', None"),
        ("kernel", "cubic", "one of"),
        ("loss", "hinge", "one of"),
        ("bandwidth", "mode", "a positive number, 'mean' or 'median'"),
        ("bandwidth", -1.0, "a positive number, 'mean' or 'median'"),
        ("alpha", 0, "a positive number or 'auto'"),
        ("tol", float("nan"), "a positive number"),
        ("n_components", 0, "a positive whole number"),
        ("max_iter", 1.5, "a positive whole number"),
    ],
)
def test_bad_parameters_are_named(parameter: str, value: Any, allowed: str) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match=rf"^{parameter} must be {allowed}"):
        PooledKernelClassifier(**{parameter: value}).fit(X, y)


def test_bad_weights_and_columns_are_refused() -> None:
    X, y = load_iris(return_X_y=True)
    model = PooledKernelClassifier()
    with pytest.raises(InputError, match="not negative"):
        model.fit(X, y, sample_weight=np.r_[-1.0, np.ones(149)])
    with pytest.raises(ValueError, match="at least one"):
        model.fit(X, y, sample_weight=np.zeros(150))
    with pytest.raises(InputError, match="at least two classes"):
        model.fit(X, np.zeros(150))
    with pytest.raises(InputError, match="constant"):
        model.fit(np.c_[X, np.ones(150)], y)


def test_no_probabilities_from_the_smooth_hinge() -> None:
    X, y = load_iris(return_X_y=True)
    model = PooledKernelClassifier(loss="smooth_hinge", random_state=0).fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert model.score(X, y) > 0.9


def test_says_when_it_did_not_converge() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = PooledKernelClassifier(scale="standard", max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model.fit(X, y)
