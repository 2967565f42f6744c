"""Settings are checked before anything runs, and say what was wrong in one line."""

from __future__ import annotations

import msgspec
import pytest

from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.stochastic import learner
from vertikal.errors import InputError
from vertikal.losses.pointwise import LOSSES
from vertikal.party.party import digest


def step_size_of(settings):
    return learner.step_size_of(settings, LOSSES[settings.loss].curvature_bound)


def make(**settings):
    given = {"parties": ("a", "b", "c"), "label_parties": ("a", "b")}
    return FdsklSettings(**(given | settings))


REFUSED = [
    ("kernel", "rbf", "one of "),
    ("loss", "hinge", "one of "),
    ("solver", "sgd", "one of 'exact', 'dsg', got 'sgd'"),
    ("feature_map", "wavelet", "one of 'fourier', 'landmarks', got 'wavelet'"),
    ("disclosure", "closed", "one of 'open', 'values', 'sealed', got 'closed'"),
    ("directions", "public", "one of 'private', 'shared', got 'public'"),
    ("schedule", "whenever", "one of 'sync', 'async', got 'whenever'"),
    ("scale", "unit", "one of None, 'standard', 'minmax', 'max', got 'unit'"),
    ("ring_bits", 64, "one of 8, 16, 32, got 64"),
    ("ring_bits", 7, "one of 8, 16, 32, got 7"),
    ("ring_bits", "8", "one of 8, 16, 32, got '8'"),
    ("ring_bits", 8.0, "one of 8, 16, 32, got 8.0"),
    *(
        ("bandwidth", value, "a positive number, 'median' or 'mean', got ")
        for value in (0, -1.0, float("nan"), float("inf"), "wide", True, None)
    ),
    *(
        ("alpha", value, r"a positive number or 'auto' \(.* / rows\), got ")
        for value in (0, -1e-3, float("nan"), "none", False)
    ),
    *(
        ("step_size", value, "a positive number or 'auto', got ")
        for value in (0, -1, float("inf"), "big")
    ),
    *(("tol", value, "a positive number, got ") for value in (0, -1.0, "auto")),
    *(
        (name, value, "a positive whole number, got ")
        for name in ("n_components", "samples", "features", "max_iter", "max_staleness")
        for value in (0, -3, 1.5, True, "8", None)
    ),
    ("steps", 0, r"a positive whole number or None \(each direction once\), got 0"),
    ("cache_size", 0, "a positive whole number of bytes, or None for no limit, got 0"),
    ("n_components", 1, "at least the number of label parties, 2, got 1"),
]


@pytest.mark.parametrize(("name", "value", "rest"), REFUSED)
def test_a_wrong_setting_is_named(name, value, rest):
    with pytest.raises(InputError, match=rf"^{name} must be {rest}") as caught:
        make(**{name: value})
    assert "\n" not in str(caught.value)
    assert repr(value) in str(caught.value)


def test_a_step_that_would_turn_the_sign_is_refused():
    with pytest.raises(InputError, match=r"^step_size must be below 1 / alpha = 2, got 2.0$"):
        make(solver="dsg", step_size=2.0, alpha=0.5)
    make(solver="dsg", step_size=1.9, alpha=0.5)
    make(solver="exact", step_size=2.0, alpha=0.5)


def test_all_parties_agree_by_one_digest():
    assert digest(make()) == digest(make())
    fields = {"kernel": "laplace", "seed": 1, "n_components": 1000, "label_parties": ("b", "a")}
    digests = {digest(make(**{name: value})) for name, value in fields.items()}
    assert len(digests | {digest(make())}) == 5


def test_settings_travel_as_json():
    settings = make(bandwidth=0.5, cache_size=10**6)
    raw = msgspec.json.encode(settings)
    assert msgspec.json.decode(raw, type=FdsklSettings) == settings


@pytest.mark.parametrize(
    ("cache_size", "bits", "kept"),
    [(None, 8, 1000), (10**9, 8, 1000), (51_200, 8, 100), (51_200, 16, 50), (511, 8, 0)],
)
def test_cached_rows_by_hand(cache_size, bits, kept):
    # Two label parties own 512 directions each.
    settings = make(cache_size=cache_size, ring_bits=bits, n_components=1024)
    assert settings.cached_rows(1000) == kept


def test_automatic_step_sizes():
    assert step_size_of(make(step_size=0.3)) == 0.3
    assert step_size_of(make(samples=64, features=64)) == 4.0
    assert step_size_of(make(samples=1024, features=64)) == 4.0
    assert step_size_of(make(samples=1, features=1)) == pytest.approx(1 / 16)
    assert step_size_of(make(loss="square")) == 0.5
    assert step_size_of(make(precondition=True, samples=512)) == 2.0


def test_landmarks_are_kept_as_four_bytes_each():
    settings = FdsklSettings(
        parties=("a", "b"),
        label_parties=("a",),
        feature_map="landmarks",
        ring_bits=16,
        n_components=100,
        cache_size=4000,
    )
    assert settings.cached_rows(50) == 10


def test_landmarks_are_open_only():
    with pytest.raises(
        InputError, match=r"^feature_map must be 'fourier' with disclosure='values'"
    ):
        make(feature_map="landmarks", ring_bits=16, disclosure="values", label_parties=("a",))


@pytest.mark.parametrize(
    ("hidden", "expected"),
    [
        ({}, 1e-4),
        ({"disclosure": "values"}, 7e-3),
        ({"disclosure": "values", "value_bits": 28}, 1e-4),
        ({"disclosure": "values", "hidden_bits": 32}, 1e-2),
    ],
)
def test_where_the_solver_stops(hidden, expected):
    settings = FdsklSettings(parties=("a", "b", "c"), label_parties=("a",), tol=1e-4, **hidden)
    assert settings.stopping() == expected
