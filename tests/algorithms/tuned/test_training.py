"""The tuned kernel machine against the pooled recipe; levels, parties, growth, resuming."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.algorithms.tuned.runs import (
    NAMES,
    SECRETS,
    classes_of,
    columns_of,
    predicted,
    settings_of,
    trained,
)
from tests.naive.tuned import PooledRecipe
from vertikal.algorithms.algorithm import LEVELS
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.algorithms.kernel_machine.settings import Values
from vertikal.algorithms.tuned import search, training
from vertikal.algorithms.tuned.algorithm import KERNEL
from vertikal.data.encoding import learn_encoding
from vertikal.data.tables import Table
from vertikal.errors import InputError

ROWS = 400
TABLES = columns_of(ROWS)
Y = classes_of(TABLES)
NEW = columns_of(150, seed=7)
NEW_Y = classes_of(NEW, seed=8)
RELEVANT = {"bank": "bank0", "shop": "shop1", "post": "post2"}


def accuracy(f):
    return np.mean((f[:, 0] > 0) == (NEW_Y > 0))


@pytest.fixture(scope="module")
def plain():
    settings = settings_of(n_components=128)
    return settings, *trained(TABLES, Y, settings)


def test_the_choices_and_predictions_of_the_pooled_recipe(monkeypatch):
    # Solved exactly, so that nothing but the ring's rounding is left between the two.
    monkeypatch.setattr(search, "TOLERANCE", 1e-7)
    monkeypatch.setattr(training, "TOLERANCE", 1e-7)
    monkeypatch.setattr(training, "SEARCH_TOLERANCE", 1e-5)
    settings = settings_of(n_components=128)
    shards, _ = trained(TABLES, Y, settings)
    encodings = {
        name: learn_encoding(Table(name, shards[name].columns, TABLES[name]), "smooth")
        for name in NAMES
    }

    def encoded(tables):
        return {
            name: encodings[name]
            .apply(Table(name, shards[name].columns, tables[name]))
            .block(slice(None))
            for name in NAMES
        }

    twin = PooledRecipe(encoded(TABLES), SECRETS, settings, Y).fit()
    leader = shards["bank"]
    assert leader.rounds == twin.round
    chosen = leader.trials[-1]
    assert (chosen.gaussian, chosen.laplace) == twin.factors
    assert leader.training.penalty == pytest.approx(twin.penalty)
    relevance = np.concatenate([shards[name].relevance for name in NAMES])
    np.testing.assert_allclose(relevance, twin.relevance, rtol=2e-2)
    expected = twin.predict([encoded(NEW)[name] for name in NAMES])
    found = predicted(NEW, shards, settings)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-2 * expected.std())


def test_each_party_learns_which_of_its_columns_matter(plain):
    _, shards, _ = plain
    for name, column in RELEVANT.items():
        relevance = shards[name].column_relevance()
        assert relevance[column] == 1.0
        assert np.median(list(relevance.values())) < 0.6


def test_an_owner_is_told_of_its_own_columns(plain):
    _, shards, _ = plain
    assert KERNEL.facts_for_owner(shards["post"])["relevance"].startswith("post2 1.00, ")
    assert set(KERNEL.facts_for_owner(shards["post"])) == {"relevance"}
    assert "128 directions" in KERNEL.facts_for_owner(shards["bank"])["chosen"]


def test_relevance_beats_equal_columns(plain):
    settings, shards, _ = plain
    assert shards["bank"].rounds > 0
    first = [one.loss for one in shards["bank"].trials if one.round == 0]
    later = [one.loss for one in shards["bank"].trials if one.stage == "relevance" and one.round]
    assert min(later) < 0.9 * min(first)
    assert accuracy(predicted(NEW, shards, settings)) > 0.8


def test_only_label_parties_know_trials_and_coefficients(plain):
    _, shards, _ = plain
    assert shards["bank"].learned
    assert shards["bank"].trials
    for name in ("shop", "post"):
        assert not shards[name].learned
        assert not shards[name].trials


def test_what_is_sent_is_what_the_job_says(plain):
    settings, _, ledgers = plain
    said = {one.name for one in KERNEL.messages(settings)}
    sent = {entry.disclosure.name for ledger in ledgers.values() for entry in ledger.entries()}
    assert sent == said - {"resumed"}


@pytest.mark.slow
@pytest.mark.parametrize("disclosure", ["open", "values"])
def test_several_label_parties(disclosure):
    tables = columns_of(1100)
    y = classes_of(tables)
    names = (*NAMES, "notary") if disclosure == "values" else NAMES
    level = Values(dealer="notary") if disclosure == "values" else "open"
    settings = settings_of(
        parties=names, label_parties=("bank", "shop"), n_components=96, disclosure=level
    )
    shards, _ = trained(tables, y, settings)
    assert all(shards[name].learned for name in ("bank", "shop"))
    assert shards["shop"].trials == shards["bank"].trials
    assert accuracy(predicted(NEW, shards, settings)) > 0.75


def test_hidden_features_give_nearly_the_model_of_the_open_level():
    tables = columns_of(1500)
    y = classes_of(tables)
    found = {}
    for level in ("open", "values"):
        settings = settings_of(n_components=128, disclosure=level)
        shards, ledgers = trained(tables, y, settings)
        found[level] = predicted(NEW, shards, settings)
        if level == "values":
            names = {e.disclosure.name for one in ledgers.values() for e in one.entries()}
            assert "phases" not in names
            assert "sketches" in names
            tried = {(one.gaussian, one.laplace) for one in shards["bank"].trials}
            assert tried == {(0.7, 0.7), (0.4, 0.4)}
            assert (
                RELEVANT["post"]
                == max(shards["post"].column_relevance().items(), key=lambda item: item[1])[0]
            )
    assert accuracy(found["open"]) > 0.85
    assert accuracy(found["values"]) > accuracy(found["open"]) - 0.06


def test_regression_and_several_outputs_and_weights():
    target = TABLES["bank"][:, 0] * TABLES["shop"][:, 1] * 50 + 300
    settings = settings_of(n_components=96, regression=True)
    shards, _ = trained(TABLES, target, settings)
    wanted = NEW["bank"][:, 0] * NEW["shop"][:, 1] * 50 + 300
    found = predicted(NEW, shards, settings)[:, 0]
    assert np.square(found - wanted).mean() < 0.35 * wanted.var()

    thirds = np.digitize(TABLES["post"][:, 2], [-0.5, 0.5])
    outputs = np.where(thirds[:, None] == np.arange(3), 1.0, -1.0)
    settings = settings_of(n_components=96, outputs=3)
    shards, _ = trained(TABLES, outputs, settings)
    wanted = np.digitize(NEW["post"][:, 2], [-0.5, 0.5])
    assert np.mean(predicted(NEW, shards, settings).argmax(axis=1) == wanted) > 0.8


def test_rows_without_weight_do_not_count():
    wrong = Y.copy()
    wrong[300:] *= -1
    weights = np.r_[np.ones(300), np.zeros(100)]
    settings = settings_of(n_components=96)
    shards, _ = trained(TABLES, wrong, settings, weights=weights)
    assert accuracy(predicted(NEW, shards, settings)) > 0.75


@pytest.mark.slow
def test_directions_are_added_while_held_out_rows_get_better():
    tables = columns_of(2400)
    settings = settings_of()
    shards, _ = trained(tables, classes_of(tables), settings)
    grown = {one.directions for one in shards["bank"].trials if one.stage == "model"}
    assert grown == {1024, 2048}
    assert shards["bank"].n_components in grown
    assert len(shards["shop"].blocks) == len(shards["bank"].blocks)
    assert accuracy(predicted(NEW, shards, settings)) > 0.85


def test_a_budget_bounds_directions_and_bytes():
    settings = settings_of(budget="500KB")
    assert sum(settings.growth(ROWS)) < 512
    shards, ledgers = trained(TABLES, Y, settings)
    assert shards["bank"].n_components == sum(settings.growth(ROWS))
    assert sum(entry.bytes for entry in ledgers["shop"].entries()) < 520_000
    assert settings_of(budget="9MB").growth(3_000) == (1024,)
    assert settings_of().growth(30_000) == (1024, 1024)


@pytest.mark.parametrize(
    ("disclosure", "parties"),
    [
        ("open", NAMES),
        (Values(), NAMES),
        (Values(bits=64), NAMES),
        (Values(), NAMES[:2]),
    ],
)
def test_the_bytes_that_a_budget_goes_by_are_those_of_a_pass(disclosure, parties):
    settings = settings_of(disclosure=disclosure, parties=parties)
    cost = FDSKL.cost(settings.model_block(1024), 30_000, 20)
    busiest = max(cost.bytes_sent.values()) / (30_000 * 1024)
    assert 0.8 * settings.bytes_each() < busiest <= settings.bytes_each()
    # As many directions as are ever taken are affordable for so many rows.
    assert settings.growth(10_000) == ((2048,) if settings.hides else (1024, 1024))


class Memory(dict):
    """Checkpoints in memory, and a crash after so many blocks."""

    def __init__(self, most=10**6):
        super().__init__()
        self.most = most
        self.lists = {}

    def saved_blocks(self, name):
        return sum(1 for known, _ in self if known == name)

    def save_block(self, name, number, block):
        if len(self) == self.most:
            raise OSError("the disk is gone")
        self[name, number] = block.copy()

    def restore_block(self, name, number, into):
        into[...] = self[name, number]

    def append(self, name, entry, *, durable=False):
        self.lists.setdefault(name, []).append(entry)

    def entries(self, name):
        return list(self.lists.get(name, []))


@pytest.mark.parametrize("disclosure", ["open", "values"])
def test_a_run_that_was_broken_off_ends_in_the_same_model(disclosure):
    tables = columns_of(1100)
    y = classes_of(tables)
    settings = settings_of(n_components=32, disclosure=disclosure)
    whole, _ = trained(tables, y, settings, checkpoints={name: Memory() for name in NAMES})
    broken = {name: Memory(2 if disclosure == "open" else 10**6) for name in NAMES}
    if disclosure == "open":
        with pytest.raises(OSError, match="gone"):
            trained(tables, y, settings, checkpoints=broken)
        assert len(broken["bank"]) == 2
        for memory in broken.values():
            memory.most = 10**6
    else:
        trained(tables, y, settings, checkpoints=broken)
        opened = {name: len(rows) for name, rows in broken["shop"].lists.items()}
    again, ledgers = trained(tables, y, settings, checkpoints=broken)
    if disclosure == "open":
        for mine, theirs in zip(again["bank"].blocks, whole["bank"].blocks, strict=True):
            np.testing.assert_array_equal(mine.coefficients, theirs.coefficients)
        sent = [e.bytes for e in ledgers["shop"].entries() if e.disclosure.name == "phases"]
        assert sum(sent) < 1100 * 32 * 4 * 0.6
    else:
        # Every answer was known: nothing was opened a second time.
        assert {name: len(rows) for name, rows in broken["shop"].lists.items()} == opened


@pytest.mark.parametrize(
    ("signal", "better", "no_worse", "tried", "taken"),
    [
        (1.0, 0.0, np.inf, 1.1, 0.7),
        (1.0, np.inf, 0.0, 1.1, 1.1),
        (-np.inf, np.inf, 0.0, 0.4, 0.7),
        (-np.inf, 0.0, np.inf, 0.4, 0.4),
    ],
)
def test_hidden_features_have_the_bandwidth_that_rows_held_out_choose(
    monkeypatch, signal, better, no_worse, tried, taken
):
    """Here rounds explain any share of the labels, or none; any loss is small enough, or none."""
    monkeypatch.setattr(search, "SIGNAL", signal)
    monkeypatch.setattr(search, "BETTER", better)
    monkeypatch.setattr(search, "NO_WORSE", no_worse)
    tables = columns_of(1100)
    settings = settings_of(n_components=64, disclosure="values")
    shards, _ = trained(tables, classes_of(tables), settings)
    trials = shards["bank"].trials
    assert {one.gaussian for one in trials if one.stage == "relevance"} == {0.7}
    assert [one.gaussian for one in trials if one.stage == "bandwidth"] == [tried]
    assert {(one.gaussian, one.laplace) for one in trials if one.stage == "model"} == {
        (taken, taken)
    }


def test_wide_kernels_are_tried_where_hidden_columns_explain_little():
    tables = columns_of(1100)
    y = np.where(np.random.default_rng(5).random(1100) < 0.3, 1.0, -1.0)
    shards, _ = trained(tables, y, settings_of(n_components=64, disclosure="values"))
    trials = shards["bank"].trials
    assert [one.gaussian for one in trials if one.stage == "bandwidth"] == [1.1]


def test_the_declared_maxima_hold():
    tables = columns_of(1100)
    settings = settings_of(n_components=256, disclosure="values")
    memories = {name: Memory() for name in NAMES}
    trained(tables, classes_of(tables), settings, checkpoints=memories)
    (said,) = KERNEL.exposure(settings).opened
    lists = [rows for name, rows in memories["shop"].lists.items() if name.startswith("opened")]
    assert len(lists) == 5
    entries = [np.frombuffer(one, np.int64) for rows in lists for one in rows]
    values = sum(int(one[0]) for one in entries if one[0] > 0)
    gradients = -sum(int(one[0]) for one in entries if one[0] < 0)
    assert 0 < values <= said.at_most.values <= said.safe_passes
    assert 0 < gradients <= said.at_most.gradients


def test_exposure_and_cost_add_up_all_passes():
    settings = settings_of(n_components=1024)
    exposure = KERNEL.exposure(settings)
    assert exposure.level in LEVELS
    assert exposure.components == 3 * 512 + 1024
    (phases,) = exposure.opened
    assert phases.at_most.about_a_row == 8 * exposure.components
    assert phases.safe_passes is None
    _, ledgers = trained(TABLES, Y, settings_of(n_components=64))
    cost = KERNEL.cost(settings_of(n_components=64), ROWS, 4)
    sent = sum(entry.bytes for entry in ledgers["shop"].entries())
    assert 0.8 < sent / cost.bytes_sent["shop"] < 1.2
    assert set(cost.memory) == set(NAMES)


def test_a_level_that_is_not_there():
    with pytest.raises(InputError, match=r"^disclosure must be 'open' or 'values': the search"):
        settings_of(disclosure="sealed")
    with pytest.raises(InputError, match=r"^disclosure must be one of"):
        settings_of(disclosure="closed")


def test_hidden_fits_that_go_on_from_one_another_stop_later_than_a_plain_one():
    block = settings_of(disclosure="values").model_block(1024)
    assert block.stopping() < block.plain().stopping()
    values = Values(bits=64, value_bits=28, gradient_bits=28)
    precise = settings_of(disclosure=values).model_block(1024)
    assert precise.stopping() == precise.plain().stopping()


def test_passes_of_the_search_count():
    with pytest.raises(InputError, match=r"^max_passes must be None or at least 73"):
        settings_of(disclosure=Values(max_passes=70))
    settings = settings_of(disclosure=Values(max_passes=200))
    (said,) = KERNEL.exposure(settings).opened
    assert said.at_most.values == 200


def test_too_few_rows_to_hide():
    tables = columns_of(12)
    settings = settings_of(disclosure="values")
    with pytest.raises(InputError, match="rows must be at least"):
        trained(tables, classes_of(tables), settings)


@pytest.mark.parametrize("outputs", [1, 12])
def test_as_few_rows_as_a_hidden_model_can_do_with(outputs):
    """The helper, who counts gradients, opens all that so few rows need."""
    settings = settings_of(disclosure="values", outputs=outputs)
    fewest = settings.model_block(settings.growth(36 * outputs)[0]).fewest_rows()
    assert fewest == 36 * outputs
    tables = columns_of(fewest)
    y = np.where(np.arange(outputs) == np.arange(fewest)[:, None] % max(2, outputs), 1.0, -1.0)
    shards, _ = trained(tables, y, settings)
    assert shards["bank"].training.iterations == 0
    with pytest.raises(InputError, match=rf"^rows must be at least {fewest} .*36 for each output"):
        trained({name: some[1:] for name, some in tables.items()}, y[1:], settings)


def test_more_rows_than_short_words_can_sum():
    with pytest.raises(InputError, match=r"^bits must be 64 .* more than 2500000 rows"):
        settings_of(disclosure="values").check_rows(2_500_001)


def test_a_bad_choice_is_refused(monkeypatch):
    monkeypatch.setattr(search, "bandwidths_of", lambda multiples: (1e9, 1.0))
    with pytest.raises(Exception, match="announced the choice"):
        trained(TABLES, Y, settings_of(n_components=8))


def test_a_bad_trial_is_refused(monkeypatch):
    bad = search.Choice(7, (1.0, 1.0))
    monkeypatch.setattr(search, "trial_beside", lambda settings, seen, labels: bad)
    tables = columns_of(1100)
    with pytest.raises(Exception, match=r"announced the trial .* a round up to 2"):
        trained(tables, classes_of(tables), settings_of(n_components=16, disclosure="values"))


def test_shards_can_be_written(plain):
    settings, shards, _ = plain
    arrays = []
    msgspec.to_builtins(shards["shop"], enc_hook=lambda value: arrays.append(value) or "array")
    assert arrays
    rows = np.random.default_rng(5).normal(size=(6, 4))
    answers = KERNEL.known_answers(shards["shop"], rows)
    assert answers.shape == (6, 2 * settings.n_components)
    assert KERNEL.predicts_log_odds(settings)
