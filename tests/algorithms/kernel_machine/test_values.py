"""disclosure="values": the same model as in the open, from features that nobody sees."""

from __future__ import annotations

import warnings

import msgspec
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tests.options import grouped
from vertikal import FDSKLClassifier, FDSKLRegressor, Fourier, Stochastic, Values
from vertikal.algorithms.kernel_machine import values as hidden
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.algorithms.kernel_machine.settings import MOST_ROWS_OF_SHORT_WORDS, FdsklSettings
from vertikal.errors import InputError, RingError, SecrecyError
from vertikal.secure.hidden.hidden_features import HiddenFeatures

ROWS = 1200
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 8))
NEW = GENERATOR.normal(size=(90, 8))
Y = (X[:, 0] * X[:, 3] + 0.3 * GENERATOR.normal(size=ROWS) > 0).astype(int)
PARTIES = {"bank": [4, 0], "shop": [1, 2], "phone": [3, 5], "post": [6, 7]}


def make(estimator=FDSKLClassifier, **settings):
    given = {
        "parties": PARTIES,
        "n_components": 48,
        "alpha": 1e-2,
        "random_state": 1,
        "tol": 1e-6,
        "timeout": 20,
        "disclosure__bits": 64,
        "disclosure__max_passes": 400,
        "disclosure__value_bits": 28,
        "disclosure__gradient_bits": 28,
        "disclosure__prediction_bits": 28,
    }
    return estimator(**grouped(**(given | settings)))


def coefficients(model):
    return np.concatenate(
        [model.shards_[name].coefficients for name in model.settings_.label_parties]
    )


@pytest.mark.parametrize("label_parties", [1, 2, ["post", "bank"]])
@pytest.mark.parametrize("ring_bits", [8, 16])
@pytest.mark.parametrize("loss", ["logistic", "square", "smooth_hinge"])
def test_the_model_of_the_open_level(label_parties, ring_bits, loss):
    same = {"label_parties": label_parties, "feature_map__bits": ring_bits, "loss": loss}
    opened, values = make(**same).fit(X, Y), make(**same, disclosure="values").fit(X, Y)
    scale = np.abs(coefficients(opened)).max()
    np.testing.assert_allclose(
        coefficients(values), coefficients(opened), rtol=0, atol=1e-3 * scale
    )
    np.testing.assert_allclose(
        values.decision_function(NEW), opened.decision_function(NEW), rtol=0, atol=1e-3 * scale
    )
    assert values.objective_[-1] == pytest.approx(opened.objective_[-1], rel=1e-4)


@pytest.mark.parametrize("label_parties", [1, 2])
@pytest.mark.parametrize("ring_bits", [8, 16])
def test_the_model_of_the_open_level_on_cosines_and_sines(label_parties, ring_bits):
    same = {"label_parties": label_parties, "feature_map__bits": ring_bits}
    same |= {"feature_map__functions": "pair", "loss": "square", "tol": 1e-4}
    opened, values = make(**same).fit(X, Y), make(**same, disclosure="values").fit(X, Y)
    assert coefficients(values).shape == (96, 1)
    scale = np.abs(coefficients(opened)).max()
    np.testing.assert_allclose(
        coefficients(values), coefficients(opened), rtol=0, atol=1e-2 * scale
    )
    np.testing.assert_allclose(
        values.decision_function(NEW), opened.decision_function(NEW), rtol=0, atol=1e-2 * scale
    )


def test_cosines_and_sines_send_no_more_about_phases():
    def sent(**settings):
        found = {}
        for entry in make(disclosure="values", **settings).fit(X, Y).ledger_.entries():
            found[entry.disclosure.name] = found.get(entry.disclosure.name, 0) + entry.bytes
        return found

    cosine, pair = sent(), sent(feature_map__functions="pair")
    for name in ("phase shares", "correlation", "opening"):
        assert pair[name] == cosine[name]
    # The masked matrix itself has two columns for each direction.
    assert 1.9 * cosine["difference"] < pair["difference"] < 2 * cosine["difference"]


@pytest.mark.parametrize("functions", ["cosine", "pair"])
def test_the_estimate_of_cost_before_a_run(functions):
    model = make(disclosure="values", feature_map__functions=functions).fit(X, Y)
    sent = dict.fromkeys(PARTIES, 0)
    for entry in model.ledger_.entries():
        sent[entry.sender] += entry.bytes
    cost = FDSKL.cost(model.settings_, ROWS, 8)
    for name in ("shop", "post"):  # helper and dealer, who send nearly all
        assert sent[name] / 1.05 < cost.bytes_sent[name] < 1.5 * sent[name]
    features = {"cosine": 48, "pair": 96}[functions]
    assert cost.memory["shop"] - cost.memory["phone"] == ROWS * features * 8


def test_several_classes_and_regression():
    classes = np.digitize(X[:, 0] * X[:, 3], [-0.5, 0.5])
    for estimator, y in ((FDSKLClassifier, classes), (FDSKLRegressor, X[:, 0] * X[:, 3])):
        opened = make(estimator).fit(X, y)
        values = make(estimator, disclosure="values").fit(X, y)
        scale = np.abs(coefficients(opened)).max()
        np.testing.assert_allclose(
            coefficients(values), coefficients(opened), rtol=0, atol=1e-3 * scale
        )


def test_the_stochastic_solver_takes_the_same_steps():
    same = {"solver": Stochastic(batch_size=32, block_size=6), "label_parties": 2}
    opened, values = make(**same).fit(X, Y), make(**same, disclosure="values").fit(X, Y)
    np.testing.assert_allclose(coefficients(values), coefficients(opened), rtol=0, atol=2e-4)
    np.testing.assert_allclose(
        values.decision_function(NEW), opened.decision_function(NEW), rtol=0, atol=2e-4
    )


def test_stochastic_steps_on_cosines_and_sines():
    same = {"solver": Stochastic(batch_size=64, block_size=20), "label_parties": 2}
    same["feature_map__functions"] = "pair"
    opened, values = make(**same).fit(X, Y), make(**same, disclosure="values").fit(X, Y)
    assert (coefficients(values) != 0).all()
    np.testing.assert_allclose(coefficients(values), coefficients(opened), rtol=0, atol=4e-4)


def test_32_bits_give_the_same_model_to_two_digits_and_stop_in_time():
    opened, values = make().fit(X, Y), make(disclosure="values", disclosure__bits=32).fit(X, Y)
    assert values.n_iter_ < 40
    difference = values.decision_function(NEW) - opened.decision_function(NEW)
    assert np.abs(difference).max() < 0.02 * np.abs(opened.decision_function(NEW)).max()


def test_words_of_32_bits_are_the_default_up_to_so_many_rows():
    settings = FdsklSettings(parties=tuple(PARTIES), label_parties=("bank",), disclosure=Values())
    assert settings.values.bits == 32
    settings.check_rows(MOST_ROWS_OF_SHORT_WORDS)
    match = "bits must be 64 with disclosure='values' and more than 2500000 rows"
    with pytest.raises(InputError, match=match):
        settings.check_rows(MOST_ROWS_OF_SHORT_WORDS + 1)
    long_words = msgspec.structs.replace(settings, disclosure=Values(bits=64))
    long_words.check_rows(MOST_ROWS_OF_SHORT_WORDS + 1)


def test_features_are_what_nobody_holds():
    """Only the masked matrix is at the label party, and no phase is anywhere in the model."""
    model = make(disclosure="values").fit(X, Y)
    for disclosure in model.ledger_.disclosures():
        assert disclosure.name != "phases"
    learned = {entry.disclosure.name for entry in model.ledger_.entries()}
    assert {"phase shares", "correlation", "opening", "difference", "values"} <= learned


def test_the_ledger_names_who_gets_what():
    model = make(disclosure="values", bandwidth=2.0).fit(X, Y)
    routes = {
        (entry.sender, entry.receiver, entry.disclosure.name)
        for entry in model.ledger_.entries()
        if entry.disclosure.name != "agreement"
    }
    assert routes == {
        ("post", "bank", "dealer's keys"),
        ("post", "shop", "dealer's keys"),
        ("phone", "shop", "phase shares"),
        ("post", "shop", "correlation"),
        ("bank", "shop", "opening"),
        ("shop", "bank", "opening"),
        ("shop", "bank", "difference"),
        ("bank", "shop", "requests"),
        ("bank", "post", "requests"),
        ("bank", "shop", "questions"),
        ("post", "shop", "product masks"),
        ("shop", "bank", "values"),
    }
    by_name = {d.name: d for d in model.ledger_.disclosures()}
    assert "at most 400 numbers a row" in by_name["values"].learns
    assert not by_name["requests"].masked
    assert all(by_name[name].masked for name in ("values", "opening", "difference"))


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({}, ("shop", "post")),
        ({"helper": "phone"}, ("phone", "post")),
        ({"dealer": "shop"}, ("phone", "shop")),
        ({"helper": "post"}, ("post", "phone")),
        ({"helper": "post", "dealer": "shop"}, ("post", "shop")),
    ],
)
def test_roles_are_chosen_or_named(named, expected):
    settings = FdsklSettings(
        parties=tuple(PARTIES), label_parties=("bank",), disclosure=Values(**named)
    )
    assert settings.assistants() == expected


def test_coarse_values_are_enough_to_learn_from():
    """Noise of the helper's in f cancels over the rows: the model is nearly the open one."""
    opened = make(tol=1e-3).fit(X, Y)
    coarse = make(tol=1e-3, disclosure="values", disclosure__value_bits=8).fit(X, Y)
    f, g = opened.decision_function(NEW), coarse.decision_function(NEW)
    assert np.corrcoef(f, g)[0, 1] > 0.995
    assert "of 8 bits each" in next(
        d.learns for d in coarse.ledger_.disclosures() if d.name == "values"
    )


def test_named_roles_do_not_change_the_model():
    one = make(disclosure="values").fit(X, Y)
    other = make(disclosure="values", disclosure__helper="post", disclosure__dealer="phone").fit(
        X, Y
    )
    np.testing.assert_allclose(coefficients(one), coefficients(other), atol=1e-3)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"parties": {"bank": [0], "shop": [1]}, "label_parties": 2},
            "needs two parties without labels",
        ),
        ({"label_parties": 3}, r"a helper and a dealer, got \['post'\]; name a dealer that has no"),
        ({"disclosure__helper": "bank"}, r"helper must be a party without labels, one of \['shop'"),
        ({"disclosure__helper": "zoo"}, "helper must be a party without labels"),
        ({"disclosure__dealer": "bank"}, "dealer must be a party without labels"),
        (
            {"disclosure__helper": "shop", "disclosure__dealer": "shop"},
            "dealer must be another party than the helper",
        ),
        (
            {"feature_map__bits": 32},
            "bits of feature_map must be 8 or 16 with disclosure='values', got 32",
        ),
        ({"masking": "trees"}, "masking must be 'pads' with disclosure='values', got 'trees'"),
        ({"disclosure__bits": 16}, "bits must be one of 32, 64, got 16"),
        ({"disclosure__max_passes": 0}, "max_passes must be a positive whole number or None"),
        ({"disclosure__value_bits": 3}, "value_bits must be a whole number from 4 to 28, got 3"),
        (
            {"disclosure__value_bits": 8.5},
            "value_bits must be a whole number from 4 to 28, got 8",
        ),
        (
            {"solver": Stochastic(batch_size=15), "disclosure__gradient_bits": 8},
            "batch_size must be at least 16 with disclosure='values'",
        ),
        (
            {"solver": Stochastic(batch_size=16, block_size=64, n_steps=600)},
            "batch_size must be at least 16800 with disclosure='values', 28 for each step and",
        ),
        (
            {"solver": Stochastic(batch_size=1201)},
            "rows must be at least 1201 with disclosure='values'",
        ),
        (
            {"feature_map__functions": "pair", "cache_size": 460800},
            "cache_size must be None or at least 921600 bytes with disclosure='values'",
        ),
        (
            {"feature_map__harmonics": [1, 2]},
            r"harmonics must be \(1,\) with disclosure='values': each other one would need",
        ),
        (
            {"feature_map__functions": "pair", "solver": Stochastic(batch_size=55)},
            "batch_size must be at least 56 with disclosure='values', 56 for each step",
        ),
        ({"solver": Stochastic(precondition=True)}, "precondition must be False with"),
        (
            {"cache_size": 1000},
            "cache_size must be None or at least 460800 bytes with disclosure='values'",
        ),
        ({"disclosure__dealer": ""}, "dealer must be named by texts of 1 to"),
        ({"disclosure__dealer": 7}, "dealer must be a text or None, got 7"),
    ],
)
def test_what_is_refused(settings, said):
    with pytest.raises(InputError, match=said) as caught:
        make(disclosure="values", **settings).fit(X, Y)
    assert "\n" not in str(caught.value)


def test_enough_memory_is_enough():
    model = make(disclosure="values", cache_size=460800).fit(X, Y)
    assert model.n_iter_ > 0


def test_two_parties_with_a_dealer_that_has_no_columns():
    parties = {"bank": [0, 1, 2, 3], "shop": [4, 5, 6, 7]}
    same = {"parties": parties, "scale": "standard", "disclosure": "values"}
    model = make(**same, disclosure__dealer="notary").fit(X, Y)
    assert model.settings_.parties == ("bank", "shop", "notary")
    assert model.settings_.assistants() == ("shop", "notary")
    assert set(model.shards_) == {"bank", "shop", "notary"}
    assert model.shards_["notary"].columns == ()
    pooled = make(parties=parties, scale="standard").fit(X, Y)
    # Other offsets, so another draw of the same model; predictions of either kind agree roughly.
    assert np.corrcoef(model.decision_function(NEW), pooled.decision_function(NEW))[0, 1] > 0.6
    sent = {e.disclosure.name for e in model.ledger_.entries() if e.sender == "notary"}
    assert sent == {"agreement", "mean distance", "dealer's keys", "correlation", "product masks"}


def test_the_solver_stops_where_the_agreed_passes_end():
    model = make(disclosure="values", disclosure__max_passes=3, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match=r"in 3 iterations; raise max_passes \(which opens"):
        model.fit(X, Y)
    assert model.n_iter_ == 3
    counted = FdsklSettings(
        parties=("a", "b", "c"),
        label_parties=("a",),
        disclosure="values",
        n_components=100,
        outputs=4,
    )
    assert counted.passes("a") == 25
    assert counted.iterations(1000) == 6
    # 160 of 200 bits: three gradients of 12 bits for each output, one before the first.
    assert counted.iterations(100) == 2
    assert counted.gradients(100) == (3 + 8) * 4
    assert counted.gradients(None) == (7 + 8) * 4
    # Cosine and sine of a direction share its bits; passes go by phases.
    pairs = msgspec.structs.replace(counted, feature_map=Fourier(functions="pair"))
    assert pairs.passes("a") == 25
    assert pairs.iterations(1000) == 6
    assert pairs.iterations(200) == 2
    assert pairs.gradients(200) == (3 + 8) * 4 * 2
    assert pairs.gradients(None) == (7 + 8) * 4 * 2


def test_few_rows_are_not_hidden():
    with pytest.raises(InputError, match="rows must be at least 35 with disclosure='values'"):
        make(disclosure="values").fit(X[:34], Y[:34])
    with pytest.raises(InputError, match="rows must be at least 70 with disclosure='values'"):
        make(disclosure="values", feature_map__functions="pair").fit(X[:69], Y[:69])
    with pytest.raises(InputError, match="rows must be at least 105 with"):
        make(disclosure="values").fit(X[:104], np.arange(104) % 3)
    few = make(disclosure="values", disclosure__gradient_bits=12)
    with pytest.raises(InputError, match="rows must be at least 15 with"):
        few.fit(X[:14], Y[:14])


@pytest.fixture
def asked(monkeypatch):
    """The products that label parties asked for: kind, vectors, rows, columns."""
    found, real = [], HiddenFeatures.product

    def product(self, kind, vectors, rows=None, columns=slice(None)):
        found.append((kind, vectors.copy(), rows, columns))
        return real(self, kind, vectors, rows, columns)

    monkeypatch.setattr(HiddenFeatures, "product", product)
    return found


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "settings",
    [
        {"disclosure__max_passes": 1000, "max_iter": 1000, "tol": 1e-12},
        {"solver": Stochastic(batch_size=500, block_size=20, n_steps=48)},
    ],
)
@pytest.mark.parametrize("functions", ["cosine", "pair"])
def test_gradients_leave_most_about_every_column_open(asked, settings, functions):
    """As numbers of 28 bits about one column of phases they are two bits a row."""
    model = make(disclosure="values", feature_map__functions=functions, **settings).fit(X, Y)
    gradients = [one for one in asked if one[0] == "adjoint"]
    assert len(gradients) > 15
    numbers = 0
    for feature in range(0, len(coefficients(model)), 48):  # the cosine of direction 0, its sine
        column = []
        for _, vectors, rows, columns in gradients:
            if feature in range(len(coefficients(model)))[columns]:
                equation = np.zeros(len(X))
                equation[slice(None) if rows is None else rows] = vectors[:, 0]
                column.append(equation)
        numbers += np.linalg.matrix_rank(np.array(column))
    assert 28 * numbers <= 2 * len(X)


def test_a_row_that_a_batch_draws_twice_is_asked_for_once(asked):
    same = {"solver": Stochastic(batch_size=128, block_size=20)}
    opened, values = make(**same).fit(X, Y), make(**same, disclosure="values").fit(X, Y)
    batches = [rows for _, _, rows, _ in asked if rows is not None]
    assert batches
    assert all(len(np.unique(rows)) == len(rows) < 128 for rows in batches)
    np.testing.assert_allclose(coefficients(values), coefficients(opened), rtol=0, atol=2e-4)


def test_the_helper_counts_what_a_batch_opens():
    with pytest.raises(SecrecyError, match="shop: bank asked for forward pass 2 over a row"):
        make(
            disclosure="values",
            disclosure__max_passes=1,
            solver=Stochastic(batch_size=150, block_size=4),
        ).fit(X, Y)


def test_too_many_rows_for_32_bits(monkeypatch):
    monkeypatch.setattr("vertikal.secure.hidden.fixed_point.TABLE_BITS", {32: 16, 64: 16})
    with pytest.raises(RingError, match=r"do not fit into 32 bits; use .*bits=64"):
        make(disclosure="values", disclosure__bits=32).fit(X, Y)


def test_blocks_and_spans_of_any_height(monkeypatch):
    whole = make(disclosure="values").fit(X, Y)
    expected = whole.decision_function(NEW)
    monkeypatch.setattr(hidden, "BLOCK_BYTES", 4 * 48 * 17)
    monkeypatch.setattr(hidden, "SPAN_CELLS", 48 * 40)
    cut = make(disclosure="values").fit(X, Y)
    np.testing.assert_allclose(cut.decision_function(NEW), expected, atol=1e-3)


@pytest.mark.parametrize("label_parties", [1, 2])
def test_blocks_at_a_time_change_nothing(monkeypatch, label_parties):
    """The parties of a machine with many cores hide several blocks at once."""
    monkeypatch.setattr(hidden, "BLOCK_BYTES", 8 * 48 * 40)
    monkeypatch.setattr(hidden, "ON_THE_WAY", 12 * 8 * 48 * 40)
    models = []
    for cores in (1, 24):
        monkeypatch.setattr("vertikal.side_by_side.cores", lambda cores=cores: cores)
        models.append(make(disclosure="values", label_parties=label_parties).fit(X, Y))
    one, many = models
    np.testing.assert_allclose(
        many.decision_function(NEW), one.decision_function(NEW), rtol=0, atol=1e-3
    )
    assert many.report_.bytes_sent == one.report_.bytes_sent


def test_predictions_open_the_rows_that_were_asked_for_once():
    model = make(disclosure="values").fit(X, Y)
    shown = hidden.disclosures_of(model.settings_, "bank", training=False)["answers"]
    assert "predictions of the rows that were asked for" in shown.learns
    one = model.decision_function(NEW[:1])
    np.testing.assert_allclose(one, model.decision_function(NEW)[:1], atol=1e-4)


def test_no_warning_where_it_converges():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(disclosure="values", tol=1e-3).fit(X, Y)
