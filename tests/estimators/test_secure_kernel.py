"""SecureKernelSVC and SecureKernelRidge against scikit-learn on the pooled columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from vertikal import SecureKernelRidge, SecureKernelSVC
from vertikal.errors import InputError


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"kernel": "rbf", "gamma": 0.02}, {"kernel": "rbf", "gamma": 0.02}),
        ({"kernel": "linear"}, {"kernel": "linear"}),
        (
            {"kernel": "polynomial", "degree": 2, "gamma": 0.1, "coef0": 1.0},
            {"kernel": "poly", "degree": 2, "gamma": 0.1, "coef0": 1.0},
        ),
    ],
)
def test_svc_equals_svc_on_the_pooled_columns(cancer, ours, theirs):
    X, y = cancer
    model = SecureKernelSVC(parties=4, **ours).fit(X[:400], y[:400])
    pooled = SVC(**theirs).fit(X[:400], y[:400])
    assert np.array_equal(model.predict(X[400:]), pooled.predict(X[400:]))
    assert model.decision_function(X[400:]) == pytest.approx(
        pooled.decision_function(X[400:]), abs=1e-2
    )
    assert model.fixed_point_.error < 1e-4


def test_only_support_vectors_are_asked_for(cancer):
    X, y = cancer
    model = SecureKernelSVC(parties=2).fit(X[:200], y[:200])
    assert 0 < len(model.support_) < 200
    assert "kernel" in {d.name for d in model.ledger_.disclosures()}


@pytest.mark.parametrize("kernel", ["conjunctive", "disjunctive", "dot_product"])
def test_kernels_of_bits(kernel):
    generator = np.random.default_rng(0)
    X = generator.integers(0, 2, (80, 10)).astype(float)
    y = (X[:, 0].astype(bool) & X[:, 5].astype(bool)).astype(int)
    model = SecureKernelSVC(parties=3, kernel=kernel, degree=2, C=10.0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.fixed_point_.bits == 16
    assert model.fixed_point_.error == 0


def test_boolean_kernels_refuse_other_numbers(cancer):
    X, y = cancer
    with pytest.raises(InputError, match="must be 0 or 1 for a boolean kernel"):
        SecureKernelSVC(kernel="disjunctive").fit(X, y)
    with pytest.raises(InputError, match="scale must be None for a boolean kernel"):
        SecureKernelSVC(kernel="disjunctive", scale="max").fit(X, y)


def test_ridge_equals_ridge_on_the_pooled_columns():
    X, y = load_diabetes(return_X_y=True)
    model = SecureKernelRidge(parties=3, gamma=5.0, alpha=0.1).fit(X[:300], y[:300])
    mean = y[:300].mean()
    pooled = KernelRidge(alpha=0.1, kernel="rbf", gamma=5.0).fit(X[:300], y[:300] - mean)
    assert model.predict(X[300:]) == pytest.approx(pooled.predict(X[300:]) + mean, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "sigmoid"}, "kernel must be one of"),
        ({"gamma": -1}, "gamma must be a positive number or 'median'"),
        ({"gamma": "scale"}, "gamma must be a positive number or 'median'"),
        ({"degree": 0}, "degree must be a positive whole number"),
        ({"ring_bits": 12}, "ring_bits must be"),
        ({"masking": "none"}, "masking must be one of"),
        ({"masking": "trees"}, "'pads' for two parties"),
        ({"label_parties": "nobody"}, "label_parties must be some of"),
        ({"kernel": "dot_product", "coefficients": (-1.0,)}, "coefficients must be"),
    ],
)
def test_bad_parameters_are_refused(cancer, options, message):
    X, y = cancer
    with pytest.raises(InputError, match=message):
        SecureKernelSVC(**options).fit(X[:30], y[:30])


def test_one_class_is_refused(cancer):
    X, _ = cancer
    with pytest.raises(InputError, match="at least two classes"):
        SecureKernelSVC().fit(X[:30], np.zeros(30))
