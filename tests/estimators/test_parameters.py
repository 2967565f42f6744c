"""Parameters are stated once: estimators, records, docstrings and scikit-learn's tools agree."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vertikal
from vertikal import (
    ADMMClassifier,
    ADMMRegressor,
    AVFKAMClassifier,
    CFKOMDRecommender,
    FDSKLClassifier,
    FDSKLRegressor,
    FedCFKRecommender,
    FederatedSearchCV,
    Fourier,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    Privacy,
    SecureKernelRidge,
    SecureKernelSVC,
    Stochastic,
    Values,
)
from vertikal.algorithms.admm.settings import AdmmSettings
from vertikal.algorithms.fedcfk.settings import FedcfkSettings, KomdSettings
from vertikal.algorithms.gram.kernel_choice import KernelChoice
from vertikal.algorithms.gram.secgram import GramSettings
from vertikal.algorithms.kernel_machine.settings import AvfkamSettings, FdsklSettings
from vertikal.algorithms.tuned.settings import KernelSettings
from vertikal.baselines.pooled import PooledKernelClassifier, PooledSettings
from vertikal.errors import InputError
from vertikal.parameters import fields_of, read

RECORDS = {
    ADMMClassifier: (AdmmSettings,),
    ADMMRegressor: (AdmmSettings,),
    AVFKAMClassifier: (AvfkamSettings,),
    CFKOMDRecommender: (KomdSettings,),
    FDSKLClassifier: (FdsklSettings,),
    FDSKLRegressor: (FdsklSettings,),
    FedCFKRecommender: (FedcfkSettings,),
    KernelClassifier: (KernelSettings,),
    KernelRegressor: (KernelSettings,),
    SecureKernelRidge: (GramSettings, KernelChoice),
    SecureKernelSVC: (GramSettings, KernelChoice),
    PooledKernelClassifier: (PooledSettings,),
}
OF_THE_JOB = {
    *("parties", "label_parties", "label_parts", "outputs"),
    *("regression", "seed", "binary", "variables"),
}
MOST = 23

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(90, 4))
Y = (X[:, 0] * X[:, 2] > 0).astype(int)
SMALL = {"parties": 3, "n_components": 32, "random_state": 0}


def parameters(estimator):
    return {
        name: one.default
        for name, one in inspect.signature(estimator).parameters.items()
        if one.kind is not inspect.Parameter.VAR_KEYWORD
    }


def documented(estimator):
    """The names under "Parameters" in an estimator's docstring."""
    text = inspect.getdoc(estimator).partition("Parameters\n----------\n")[2]
    section = re.split(r"\n\n\w+\n-+\n", text)[0]
    heads = [line for line in section.splitlines() if line and not line.startswith(" ")]
    return [name for head in heads for name in head.partition(" : ")[0].split(", ")]


def test_every_estimator_is_here():
    public = {getattr(vertikal, name) for name in vertikal.__all__ if not name.startswith("__")}
    # A search has the parameters of scikit-learn's, and no record of its own.
    estimators = {one for one in public if hasattr(one, "get_params")} - {FederatedSearchCV}
    assert estimators | {PooledKernelClassifier} == set(RECORDS)


@pytest.mark.parametrize("estimator", RECORDS)
def test_the_docstring_has_all_parameters_and_no_others(estimator):
    names = documented(estimator)
    assert len(names) == len(set(names))
    assert set(names) == set(parameters(estimator))


@pytest.mark.parametrize("estimator", RECORDS)
def test_the_defaults_are_those_of_the_record(estimator):
    given = parameters(estimator)
    fields = {field.name: field for record in RECORDS[estimator] for field in fields_of(record)}
    shared = set(given) & set(fields) - OF_THE_JOB
    assert shared
    for name in shared:
        assert read(name, given[name], fields[name].type) == fields[name].default, name


@pytest.mark.parametrize("estimator", RECORDS)
def test_every_setting_can_be_given(estimator):
    """An estimator takes what a job file takes, but for what follows from the data."""
    fields = {field.name for record in RECORDS[estimator] for field in fields_of(record)}
    fixed = {"loss"} if estimator in (FDSKLRegressor, ADMMRegressor) else set()
    assert fields - OF_THE_JOB - fixed <= set(parameters(estimator))


@pytest.mark.parametrize("estimator", RECORDS)
def test_an_estimator_has_few_parameters(estimator):
    assert len(parameters(estimator)) <= MOST


def test_an_estimator_that_tunes_itself_has_fewer():
    for estimator in (KernelClassifier, KernelRegressor):
        assert len(parameters(estimator)) <= 12


def test_options_are_parameters_of_their_own():
    model = FDSKLClassifier(**SMALL, solver="dsg")
    model.set_params(solver__n_steps=30, solver__batch_size=np.int64(16), kernel="laplace")
    assert model.solver == Stochastic(n_steps=30, batch_size=16)
    assert model.kernel == "laplace"
    assert model.get_params()["solver__n_steps"] == 30
    assert "solver__n_steps" not in model.get_params(deep=False)
    model.set_params(solver=Stochastic(step_size=0.3), solver__n_steps=5)
    assert model.solver == Stochastic(step_size=0.3, n_steps=5)
    assert model.set_params(feature_map__bits=16).feature_map == Fourier(bits=16)
    assert ADMMClassifier(kernel="gaussian").set_params(kernel__n_components=9).kernel == (
        Gaussian(n_components=9)
    )
    with pytest.raises(InputError, match=r"^solver must be some of \[.*\], got 'speed'$"):
        model.set_params(solver__speed=1)


@pytest.mark.parametrize(
    "solver", ["dsg", Stochastic(n_steps=20), {"name": "dsg", "n_steps": 20}], ids=str
)
def test_a_clone_has_the_same_options(solver):
    model = FDSKLClassifier(**SMALL, solver=solver, disclosure=Values(value_bits=8))
    other = clone(model)
    assert other.get_params() == model.get_params()
    assert other.solver == solver


def test_a_search_over_choices_and_over_options():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), FDSKLClassifier(**SMALL)),
        [
            {"fdsklclassifier__solver": ["exact", Stochastic(n_steps=40)]},
            {
                "fdsklclassifier__solver": ["dsg"],
                "fdsklclassifier__solver__n_steps": [1, 40],
            },
        ],
        cv=2,
    ).fit(X, Y)
    assert len(search.cv_results_["params"]) == 4
    scores = search.cv_results_["mean_test_score"]
    assert scores[1] == scores[3] != scores[2]


def test_a_mapping_is_as_good_as_a_record():
    given = {"privacy": {"epsilon": 8.0, "delta": 1e-4}, "random_state": 0}
    settings = ADMMClassifier(2, **given).fit(X, Y).settings_
    assert settings.privacy == Privacy(epsilon=8.0, delta=1e-4)
