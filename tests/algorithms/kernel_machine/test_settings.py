"""Settings are checked before anything runs, and say what was wrong in one line."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.options import grouped
from vertikal.algorithms.kernel_machine.settings import (
    MOST_BYTES,
    AvfkamSettings,
    FdsklSettings,
    Fourier,
    Landmarks,
    Sealed,
    Stochastic,
    Values,
)
from vertikal.algorithms.kernel_machine.stochastic import learner
from vertikal.errors import InputError
from vertikal.losses.pointwise import LOSSES
from vertikal.party.party import digest


def step_size_of(settings):
    return learner.step_size_of(settings, LOSSES[settings.loss].curvature_bound)


def make(**settings):
    given = {"parties": ("a", "b", "c"), "label_parties": ("a", "b")}
    return FdsklSettings(**grouped(**(given | settings)))


REFUSED = [
    ("kernel", "rbf", "one of "),
    ("loss", "hinge", "one of "),
    ("solver", "sgd", r"one of 'exact', 'dsg', Stochastic\(...\), got 'sgd'"),
    ("solver", Values(), r"one of 'exact', 'dsg', Stochastic\(...\), got Values"),
    ("solver", {"step_size": 0.1}, r"one of 'exact', 'dsg', Stochastic\(...\), got "),
    ("feature_map", "wavelet", "one of 'fourier', 'landmarks', Fourier.*, got 'wavelet'"),
    ("disclosure", "closed", "one of 'open', 'values', 'sealed', Values.*, got 'closed'"),
    (
        "scale",
        "unit",
        "one of 'standard', 'minmax', 'max', 'smooth', 'quantile', 'normal', None, got 'unit'",
    ),
    *(
        ("bandwidth", value, "a positive number or 'mean', 'median', or a multiple .*, got ")
        for value in (0, -1.0, float("nan"), float("inf"), "wide", True, None)
    ),
    *(
        ("alpha", value, "a positive number or 'auto', got ")
        for value in (0, -1e-3, float("nan"), "none", False)
    ),
    *(("tol", value, "a positive number, got ") for value in (0, -1.0, "auto")),
    *(
        (name, value, "a positive whole number, got ")
        for name in ("n_components", "max_iter", "outputs")
        for value in (0, -3, 1.5, True, "8", None)
    ),
    ("cache_size", 0, "a positive number of bytes below .*, or None, got 0"),
    ("n_components", 1, "at least the number of label parties, 2, got 1"),
    ("regression", 1, "True or False, got 1"),
    ("label_parties", "ab", "a list, each a text, got 'ab'"),
]
REFUSED_OPTIONS = [
    *(
        (Stochastic, "step_size", value, "a positive number or 'auto', got ")
        for value in (0, -1, float("inf"), "big")
    ),
    (Stochastic, "n_steps", 0, "a positive whole number or None, got 0"),
    *(
        (Stochastic, name, value, "a positive whole number, got ")
        for name in ("batch_size", "block_size", "max_staleness")
        for value in (0, -3, 1.5, True, "8", None)
    ),
    (
        Stochastic,
        "schedule",
        "whenever",
        "one of 'auto', 'turns', 'barrier', 'async', got",
    ),
    (Stochastic, "precondition", "yes", "True or False, got 'yes'"),
    (Fourier, "directions", "public", "one of 'private', 'shared', got 'public'"),
    *((Fourier, "bits", bad, "one of 8, 16, 32, got ") for bad in (64, 7, "8", 8.0, True)),
    (Fourier, "functions", "sine", "one of 'cosine', 'pair', got 'sine'"),
    *(
        (Fourier, "harmonics", bad, "a list, each a whole number from 1 to 16, got ")
        for bad in ([0], [1, 17], [1.5], 2, "12")
    ),
    *((Fourier, "harmonics", bad, "one or more different numbers, got ") for bad in ((), (2, 2))),
    (Landmarks, "bits", 8, "one of 16, 32, got 8"),
    (Values, "bits", 16, "one of 32, 64, got 16"),
    (Values, "max_passes", 0, "a positive whole number or None, got 0"),
    *((Values, "value_bits", bad, "a whole number from 4 to 28, got ") for bad in (3, 29, 8.5)),
    *((Values, "gradient_bits", bad, "a whole number from 8 to 28, got ") for bad in (7, 29, 8.5)),
    *((level, "dealer", 7, "a text or None, got 7") for level in (Values, Sealed)),
]
REFUSED_OF_PAIRS = [
    *(
        ("threshold", value, "a number above 0 and below 1, 'balanced' or 'f1', got ")
        for value in (0, 1, -0.1, 1.5, "accuracy", None, True, float("nan"))
    ),
    *(
        ("validation", value, "a number from 0 to 0.5, got ")
        for value in (-0.1, 0.6, "some", None, True, float("nan"))
    ),
]


@pytest.mark.parametrize(("name", "value", "rest"), REFUSED)
def test_a_wrong_setting_is_named(name, value, rest):
    with pytest.raises(InputError, match=rf"^{name} must be {rest}") as caught:
        make(**{name: value})
    assert "\n" not in str(caught.value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(("record", "name", "value", "rest"), REFUSED_OPTIONS)
def test_a_wrong_option_is_named(record, name, value, rest):
    with pytest.raises(InputError, match=rf"^{name} must be {rest}") as caught:
        record(**{name: value})
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(("name", "value", "rest"), REFUSED_OF_PAIRS)
def test_a_wrong_setting_of_pairs_is_named(name, value, rest):
    with pytest.raises(InputError, match=rf"^{name} must be {rest}") as caught:
        AvfkamSettings(parties=("a", "b"), label_parties=("a",), **{name: value})
    assert repr(value) in str(caught.value)


def test_the_four_ways_to_say_a_choice_are_one():
    named, mapped = make(solver="dsg"), make(solver={"name": "dsg"})
    assert named == mapped == make(solver=Stochastic())
    assert digest(named) == digest(mapped)
    settings = make(solver={"name": "dsg", "batch_size": np.int64(8), "step_size": np.float32(2)})
    assert settings.solver == Stochastic(batch_size=8, step_size=2.0)
    assert type(settings.solver.step_size) is float
    assert make(solver={"name": "exact"}) == make()


def test_an_unknown_option_is_named():
    with pytest.raises(InputError, match=r"^solver must be some of \['allow_.*\], got 'speed'$"):
        make(solver={"name": "dsg", "speed": 1})


def test_a_schedule_that_is_left_open_is_the_papers():
    parties = {"parties": ("a", "b"), "label_parties": ("a", "b"), "solver": "dsg"}
    assert FdsklSettings(**parties).schedule == "turns"
    assert AvfkamSettings(**parties).schedule == "async"


def test_a_step_that_would_turn_the_sign_is_refused():
    with pytest.raises(InputError, match=r"^step_size must be below 1 / alpha = 2, got 2.0$"):
        make(solver=Stochastic(step_size=2.0), alpha=0.5)
    make(solver=Stochastic(step_size=1.9), alpha=0.5)


def test_all_parties_agree_by_one_digest():
    assert digest(make()) == digest(make())
    fields = {"kernel": "laplace", "seed": 1, "n_components": 1000, "label_parties": ("b", "a")}
    digests = {digest(make(**{name: value})) for name, value in fields.items()}
    assert len(digests | {digest(make())}) == 5


def test_settings_travel_as_json():
    kind = Fourier(functions="pair", harmonics=(1, 3))
    settings = make(bandwidth=0.5, cache_size=10**6, feature_map=kind)
    raw = msgspec.json.encode(settings)
    assert msgspec.json.decode(raw, type=FdsklSettings) == settings


@pytest.mark.parametrize(
    ("cache_size", "bits", "kept"),
    [(None, 8, 1000), (10**9, 8, 1000), (51_200, 8, 100), (51_200, 16, 50), (511, 8, 0)],
)
def test_cached_rows_by_hand(cache_size, bits, kept):
    # Two label parties own 512 directions each.
    settings = make(cache_size=cache_size, feature_map__bits=bits, n_components=1024)
    assert settings.cached_rows(1000) == kept


@pytest.mark.parametrize(
    ("feature_map", "per_phase"),
    [
        (Fourier(), 1),
        (Fourier(functions="pair"), 2),
        (Fourier(harmonics=(1, 2, 3)), 3),
        (Fourier(functions="pair", harmonics=(2, 1)), 4),
        (Landmarks(), 1),
    ],
)
def test_features_of_each_direction(feature_map, per_phase):
    settings = make(n_components=101, feature_map=feature_map)
    assert settings.per_phase == per_phase
    assert settings.widths() == {"a": 51, "b": 50}
    assert settings.features() == {"a": 51 * per_phase, "b": 50 * per_phase}


def test_automatic_step_sizes():
    def size(loss="logistic", **options):
        return step_size_of(make(loss=loss, solver=Stochastic(**options)))

    assert size(step_size=0.3) == 0.3
    assert size(batch_size=64, block_size=64) == 4.0
    assert size(batch_size=1024, block_size=64) == 4.0
    assert size(batch_size=1, block_size=1) == pytest.approx(1 / 16)
    assert size(loss="square") == 0.5
    assert size(precondition=True, batch_size=512) == 2.0


def test_landmarks_are_kept_as_four_bytes_each():
    settings = FdsklSettings(
        parties=("a", "b"),
        label_parties=("a",),
        feature_map=Landmarks(bits=16),
        n_components=100,
        cache_size=4000,
    )
    assert settings.cached_rows(50) == 10


def test_landmarks_are_open_only():
    with pytest.raises(
        InputError, match=r"^feature_map must be 'fourier' with disclosure='values'"
    ):
        make(feature_map=Landmarks(bits=16), disclosure="values", label_parties=("a",))


@pytest.mark.parametrize(
    ("hidden", "expected"),
    [
        ({}, 1e-4),
        ({"disclosure": "values"}, 7e-3),
        ({"disclosure": Values(value_bits=28)}, 7e-3),
        ({"disclosure": Values(bits=64, value_bits=28, gradient_bits=28)}, 1e-4),
        ({"disclosure": Values(value_bits=28, gradient_bits=28)}, 7e-3),
    ],
)
def test_where_the_solver_stops(hidden, expected):
    settings = FdsklSettings(parties=("a", "b", "c"), label_parties=("a",), tol=1e-4, **hidden)
    assert settings.stopping() == expected


@pytest.mark.parametrize(
    ("written", "size"),
    [(None, None), (7, 7), ("7", 7), ("1.5k", 1500), (" 2 GB ", 2 * 10**9), (MOST_BYTES,) * 2],
)
def test_sizes_as_people_write_them(written, size):
    assert make(cache_size=written).cache_size == size


@pytest.mark.parametrize("written", ["9" * 400, "9" * 18 + "kb", 2**63, "0.5", "-1", 0, True, 1.5])
def test_what_is_no_size_is_refused(written):
    with pytest.raises(InputError, match="cache_size must be a positive number of bytes below"):
        make(cache_size=written)
