"""Wrong parameters, columns, labels and weights: one line that names the thing and what came."""

from __future__ import annotations

import contextlib
import re
from datetime import date

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from vertikal import FDSKLClassifier, FDSKLRegressor, Stochastic
from vertikal.errors import InputError, RingError, VertikalError

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(40, 4))
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["age", "income", "visits", "basket"])
NAN, INFINITY = float("nan"), float("inf")


def make(estimator=FDSKLClassifier, **settings):
    given = {"n_components": 16, "random_state": 0, "timeout": 60}
    return estimator(**(given | settings))


def refused(pattern, model, values=X, labels=Y, weights=None, kind=InputError):
    """Fit, and demand an error of one line that matches from its beginning."""
    with pytest.raises(kind, match=rf"^{pattern}") as caught:
        model.fit(values, labels, weights)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert not hasattr(model, "shards_")
    return str(caught.value)


PARAMETERS = [
    ("kernel", "rbf", r"one of \['gaussian', 'laplace', .*\]"),
    ("loss", "hinge", r"one of \['square', 'logistic', 'smooth_hinge'\]"),
    ("solver", "sgd", r"one of 'exact', 'dsg', Stochastic\(...\)"),
    ("masking", "none", "one of 'pads', 'trees'"),
    ("scale", "l2", "one of 'standard', 'minmax', 'max', 'smooth', 'quantile', 'normal', None"),
    ("disclosure", "secret", "one of 'open', 'values', 'sealed', Values.*, Sealed.*"),
    ("feature_map", "wavelet", "one of 'fourier', 'landmarks', Fourier.*, Landmarks.*"),
    *(("alpha", value, "a positive number or 'auto'.*") for value in (0, -1.0, NAN, "big")),
    *(
        (
            "bandwidth",
            value,
            "a positive number or 'mean', 'median', or a multiple such as '0.5 mean'",
        )
        for value in (0, -2.0, NAN, INFINITY, "wide", "2mean", None)
    ),
    *(("n_components", value, "a positive whole number") for value in (0, -1, 1.5, True, "9")),
    *(("max_iter", value, "a positive whole number") for value in (0, 2.5)),
    *(("tol", value, "a positive number") for value in (0, -1e-3, NAN)),
    *(("cache_size", value, "a positive .*") for value in ("-1GB", "lots", 0, -5, 1.5, True, "0")),
    *(("timeout", value, "a positive number of seconds.*") for value in (0, -1, NAN, "5", None)),
    *(("parties", value, "a whole number from 2 on, or .*") for value in (2.0, "two", None, True)),
    *(("parties", value, "at least 2.*") for value in (1, 0, -3)),
    ("label_parties", "party9", r"some of the parties \['party1', 'party2'\]"),
    ("label_parties", 3, "from 1 to 2"),
    ("label_parties", 0, "from 1 to 2"),
    ("label_parties", 1.5, "a number, or some of .*"),
    ("label_parties", [], "a number, or some of .*"),
    ("verbose", "loud", "a number, True, False, or an observer"),
]


@pytest.mark.parametrize(("name", "value", "allowed"), PARAMETERS)
def test_a_parameter_outside_its_range(name, value, allowed):
    refused(f"{name} must be {allowed}, got {re.escape(repr(value))}$", make(**{name: value}))


@pytest.mark.parametrize("value", [INFINITY, 1e12])
def test_a_wait_without_end_is_refused_or_possible(value):
    """Longer than the operating system can wait: an InputError, or it just works."""
    with contextlib.suppress(InputError):
        make(timeout=value).fit(X, Y)


@pytest.mark.parametrize("value", [np.int64(30), np.float32(30)])
def test_a_timeout_may_be_a_number_of_numpy(value):
    assert make(timeout=value).fit(X, Y).score(X, Y) > 0.5


OPTIONS = [
    *(("feature_map", "fourier", "bits", value, "one of 8, 16, 32") for value in (64, 7, 8.0)),
    ("feature_map", "fourier", "directions", "public", "one of 'private', 'shared'"),
    ("solver", "dsg", "schedule", "later", "one of 'auto', 'turns', 'barrier', 'async'"),
    *(("solver", "dsg", "batch_size", value, "a positive whole number") for value in (0, 2.5)),
    *(("solver", "dsg", "block_size", value, "a positive whole number") for value in (0, 2.5)),
    *(
        ("solver", "dsg", "n_steps", value, "a positive whole number or None")
        for value in (0, 2.5, "all")
    ),
    *(
        ("solver", "dsg", "step_size", value, "a positive number or 'auto'")
        for value in (0, -1, "large")
    ),
]


@pytest.mark.parametrize(("name", "choice", "option", "value", "allowed"), OPTIONS)
def test_an_option_outside_its_range(name, choice, option, value, allowed):
    """As a mapping it is met by `fit`; as a record it cannot even be made."""
    pattern = f"{option} must be {allowed}, got {re.escape(repr(value))}$"
    refused(pattern, make(**{name: {"name": choice, option: value}}))
    with pytest.raises(InputError, match=rf"^{pattern}"):
        make(**{name: choice}).set_params(**{f"{name}__{option}": value})


@pytest.mark.parametrize("name", ["solver__step_size", "kernel__width", "nothing__at_all"])
def test_an_option_of_nothing(name):
    with pytest.raises(ValueError, match=f"^{name.partition('__')[0]} must be a choice with opt"):
        make().set_params(**{name: 1})


def test_a_step_that_is_too_large():
    model = make(solver=Stochastic(step_size=3.0), alpha=0.5)
    refused(r"step_size must be below 1 / alpha = 2, got 3\.0$", model)


def test_fewer_directions_than_label_parties():
    model = make(parties=3, label_parties=3, n_components=2)
    refused("n_components must be at least the number of label parties, 3, got 2$", model)


def test_a_label_party_named_twice():
    model = make(label_parties=["party1", "party1"])
    refused(r"label_parties must be different parties, got \['party1', 'party1'\]$", model)


@pytest.mark.parametrize("label_parties", [None, ["party2"]])
def test_two_parties_have_no_two_trees(label_parties):
    model = make(masking="trees", label_parties=label_parties)
    refused(r"masking must be 'pads' for two parties .*, got 'trees'$", model)


def test_two_label_parties_have_no_two_trees_either():
    """Refused before anything is sent, not when the first partial prediction is summed."""
    model = make(parties=3, masking="trees", label_parties=2)
    message = refused(".*(masking|label_parties) must be ", model)
    assert "trees" in message


@pytest.mark.parametrize(
    ("parties", "pattern"),
    [
        ({"bank": [0, 1, 2, 3]}, r"parties must be a mapping of at least two .*, got \['bank'\]$"),
        ({}, r"parties must be a mapping of at least two .*, got \[\]$"),
        ({"bank": [0], "shop": []}, "parties must be given at least one column each; 'shop', got"),
        ({"bank": [0], "shop": slice(4, 4)}, "parties must be given at least one column each"),
        ({"bank": [0, 1], "shop": [1, 2]}, "parties must have different columns, got column 1 at "),
        ({"bank": [0, -1], "shop": [3]}, "parties must have different columns, got column 3 at "),
        ({"bank": [0], "shop": [4]}, r"parties\['shop'\] must be columns from 0 to 3, got 4$"),
        ({"bank": [0], "shop": [-5]}, r"parties\['shop'\] must be columns from 0 to 3, got -5$"),
        ({"bank": [0], "shop": [1.5]}, r"parties\['shop'\] must be columns from 0 to 3, got 1.5$"),
        (
            {"bank": [0], "shop": ["age"]},
            r"parties\['shop'\] must be column numbers, .*, got 'age'$",
        ),
        ({"bank": [0], "shop": [True]}, r"parties\['shop'\] must be a mask of 4 entries, got 1$"),
        ({"bank": [0], "shop": None}, r"parties\['shop'\] must be .*, got None$"),
        ({"bank": [0], "shop": 1.5}, r"parties\['shop'\] must be .*, got 1.5$"),
        ({"bank": [0], "": [1]}, r"parties must be named by texts .*, got ''$"),
        ({"bank": [0], 7: [1]}, r"parties must be named by texts .*, got 7$"),
        (
            {"bank": [0], "x" * 65: [1]},
            r"parties must be named by texts of 1 to 64 characters, got",
        ),
        ({"bank": [0], "a\nb": [1]}, r"parties must be named by texts .*, got 'a\\nb'$"),
        (5, "parties must be at most the number of columns, got 5 parties for 4 feature"),
    ],
)
def test_columns_that_cannot_be_assigned(parties, pattern):
    refused(pattern, make(parties=parties))


def test_columns_of_a_frame_by_name():
    model = make(parties={"bank": ["age"], "shop": ["wealth"]})
    refused(
        r"column 'wealth' of parties\['shop'\] is not in the input, whose columns are 'age', .*'$",
        model,
        FRAME,
    )
    model = make(parties={"bank": ["age"], "shop": ["visit"]})
    refused(
        r"column 'visit' of parties\['shop'\] is not in the input; it has 'visits'$", model, FRAME
    )
    model = make(parties={"bank": ["age", "visits"], "shop": ["visits"]})
    refused(
        "parties must have different columns, got column 'visits' at both 'bank' and 'shop'$",
        model,
        FRAME,
    )


@pytest.mark.parametrize("cell", ["blue", "", None])
def test_cells_that_are_no_numbers_in_an_array(cell):
    values = X.astype(object)
    values[7, 2] = cell
    pattern = f"columns: column '?2'? of party 'party2' must hold numbers, got {cell!r}; encode "
    if cell is None:
        # scikit-learn reads None as a missing value.
        pattern = r"columns: column '?2'? of party 'party2' must hold finite numbers, got NaN"
    refused(pattern, make(), values)


@pytest.mark.parametrize("cells", [[["a", "list"]], [date(2020, 1, 1)]])
def test_cells_that_are_neither_numbers_nor_text_in_a_frame(cells):
    refused(
        "columns: column 'visits' of party 'shop' must hold numbers or text, got (list|date)$",
        make(parties={"bank": ["age"], "shop": ["basket", "visits"]}),
        FRAME.assign(visits=cells * len(FRAME)),
    )


def test_times_in_a_frame():
    refused(
        "column 'visits' of party 'shop' must be of numbers or text, got timestamp",
        make(parties={"bank": ["age"], "shop": ["basket", "visits"]}),
        FRAME.assign(visits=pd.date_range("2020-01-01", periods=len(FRAME))),
    )


@pytest.mark.parametrize(
    ("cell", "word"),
    [(NAN, r"NaN \(a missing value\)"), (INFINITY, "infinity"), (-INFINITY, "infinity")],
)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_cells_that_are_not_finite(cell, word, container):
    values = X.copy()
    values[5, 3] = cell
    pattern = rf"columns: column '?3'? of party 'party2' must hold finite numbers, got {word}"
    refused(pattern, make(), container(values))


def test_missing_values_when_predicting():
    model = make().fit(X, Y)
    values = X.copy()
    values[0, 1] = NAN
    with pytest.raises(
        InputError, match=r"^columns: column '?1'? of party 'party1' must hold finite"
    ):
        model.predict(values)


def test_columns_that_are_all_constant():
    refused("columns: one at least must vary, got constants only", make(), np.ones_like(X))


@pytest.mark.parametrize("label", [1, "yes"])
def test_one_class(label):
    labels = np.full(40, label)
    refused(f"y must hold at least two classes, got one class: {label!r}$", make(), X, labels)


@pytest.mark.parametrize("gap", [None, float("nan")])
def test_labels_that_are_missing(gap):
    labels = np.where(X[:, 0] > 0, "late", "in time").astype(object)
    labels[[3, 7]] = gap
    refused(
        f"y must hold a label in each row, got 2 of {len(X)} that are missing; ", make(), X, labels
    )


@pytest.mark.parametrize("estimator", [FDSKLClassifier, FDSKLRegressor])
@pytest.mark.parametrize(
    ("weights", "pattern"),
    [
        (np.r_[-0.5, np.ones(39)], "sample_weight must be not negative, got -0.5$"),
        # Recent versions of scikit-learn see it first.
        (np.zeros(40), "(sample_weight must be positive for at least one row|Sample weights must)"),
    ],
)
def test_weights(estimator, weights, pattern):
    refused(pattern, make(estimator), X, Y, weights, kind=ValueError)


@pytest.mark.parametrize("class_weight", [{0: -1.0, 1: 1.0}, {0: 0.0, 1: 0.0}, {0: NAN, 1: 1.0}])
def test_class_weights(class_weight):
    refused("class_weight must be ", make(class_weight=class_weight))


@pytest.mark.parametrize("size", [39, 41])
def test_weights_of_another_length(size):
    with pytest.raises(ValueError, match="sample_weight"):
        make().fit(X, Y, np.ones(size))


@pytest.mark.parametrize("settings", [{}, {"label_parties": 2}, {"masking": "trees", "parties": 3}])
def test_huge_columns_at_a_fixed_bandwidth_name_the_remedy(settings):
    model = make(bandwidth=1.0, **settings)
    message = refused(
        "(party[123]: )?.*phases: a projection of .* is beyond double precision",
        model,
        X * 1e16,
        kind=RingError,
    )
    assert message.endswith("raise the bandwidth or scale the columns")


def test_huge_columns_at_the_mean_bandwidth_name_the_remedy():
    message = refused("", make(), X * 1e16, kind=RingError)
    assert "scale the columns" in message
    assert make(scale="standard").fit(X * 1e16, Y).score(X * 1e16, Y) > 0.8


@pytest.mark.parametrize("values", [X[:, 0], X[None], X[:1]])
def test_input_of_another_shape(values):
    with pytest.raises(ValueError, match=r"2D array|dim 3|minimum of 2"):
        make().fit(values, Y[: len(values)])


def test_another_number_of_columns_when_predicting():
    with pytest.raises(ValueError, match="3 features, but FDSKLClassifier is expecting 4"):
        make().fit(X, Y).predict(X[:, :3])


def test_an_input_error_is_a_value_error_and_catchable_as_ours():
    with pytest.raises(VertikalError):
        make(kernel="rbf").fit(X, Y)
    with pytest.raises(ValueError, match=r"^kernel must be "):
        make(kernel="rbf").fit(X, Y)
