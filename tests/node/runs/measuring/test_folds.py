"""Models measured by folds: which fits judge which rows, what is sent for it, what it opens."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.node.runs.measuring.test_evaluation import (
    JOB,
    OPEN,
    ROWS,
    begin,
    run,
    write_people,
)
from tests.node.services import trio
from tests.node.test_algorithms import SEALED
from tests.organisations import NAMES, WITH_NOTARY
from vertikal.demo.credit import credit_population
from vertikal.errors import AgreementError, PeerVisibleError
from vertikal.node.config.job_file import Job
from vertikal.node.models.store import ModelStore
from vertikal.node.runs import leader
from vertikal.node.runs.measuring import row_parts
from vertikal.node.runs.workplaces import FolderWorkplace
from vertikal.party.party import Party

FOLDS = "[evaluation]\nfolds = 3\n"
PLAIN = FOLDS + "linear = false\n"
FIXED = 'n_components = 64\nbandwidth = 3.0\nscale = "standard"\n'
UNSCALED = "n_components = 64\nbandwidth = 30000.0\n"


def folds_of(folder, top=PLAIN, settings=UNSCALED):
    """The fold of each row, as the lender of such a job draws it."""
    path = folder / "drawn.toml"
    columns = list(credit_population(2, 3).columns["lender"])
    path.write_text(
        JOB.format(
            top=top,
            settings=settings,
            algorithm="fdskl",
            part="",
            lender=f"columns = {columns}",
            bank="",
            shop="",
        )
    )
    place = FolderWorkplace("lender", Job.load(path), path)
    return row_parts.choose_parts(place, np.arange(ROWS))


def cut(folder, name, rows, ending):
    head, *lines = (folder / f"{name}.csv").read_text().splitlines()
    chosen = [line for line, wanted in zip(lines, rows, strict=True) if wanted]
    (folder / f"{name}{ending}.csv").write_text("\n".join([head, *chosen]) + "\n")


def test_each_row_is_judged_by_a_model_that_never_saw_its_fold(tmp_path):
    """The twins: one job for each fold on the other rows, which predicts a table of its rows."""
    people = write_people(tmp_path)
    found = run(tmp_path, "whole", PLAIN, UNSCALED)
    folds = folds_of(tmp_path)
    values = np.zeros(ROWS)
    for fold in (1, 2, 3):
        for name in NAMES:
            cut(tmp_path, name, folds != fold, "-rest")
            cut(tmp_path, name, folds == fold, f"-fold{fold}")
        tested = {name: f'test = "{name}-fold{fold}.csv"' for name in NAMES}
        tested["lender"] += f"\ncolumns = {list(people.columns['lender'])}"
        run(tmp_path, f"twin{fold}", "", UNSCALED, part="-rest", **tested)
        with (tmp_path / "out" / "predictions.csv").open() as file:
            values[folds == fold] = [float(line["value"]) for line in csv.DictReader(file)]
    each = [roc_auc_score(people.y[folds == fold], values[folds == fold]) for fold in (1, 2, 3)]
    assert found.evaluation.folds == pytest.approx(each, abs=1e-3)
    whole = roc_auc_score(people.y, values)
    assert found.evaluation.together.numbers["auc"].value == pytest.approx(whole, abs=1e-3)
    assert found.evaluation.together.rows == found.evaluation.alone.rows == ROWS
    assert found.evaluation.trained == ROWS * 2 // 3
    # The model is that of a job without an evaluation: of all rows.
    twin = run(tmp_path, "plain", "", UNSCALED)
    assert found.manifest.digest == twin.manifest.digest
    assert "fold by fold" in found.evaluation.rows_line


BY_TIME = '[evaluation]\nfolds = 2\nlinear = false\ntime = "month"\n'


def test_by_time_each_fold_is_judged_by_a_model_of_the_rows_before_it(tmp_path):
    """The twins: a job on the rows before each fold, which predicts the fold's."""
    people = write_people(tmp_path)
    found = run(tmp_path, "whole", BY_TIME, UNSCALED)
    folds = folds_of(tmp_path, BY_TIME)
    months = np.genfromtxt(tmp_path / "lender.csv", delimiter=",", names=True)["month"]
    assert set(folds.tolist()) == {0, 1, 2}
    assert all(months[folds == k].max() < months[folds == k + 1].min() for k in (0, 1))
    each = []
    for fold in (1, 2):
        for name in NAMES:
            cut(tmp_path, name, folds < fold, "-rest")
            cut(tmp_path, name, folds == fold, f"-fold{fold}")
        tested = {name: f'test = "{name}-fold{fold}.csv"' for name in NAMES}
        tested["lender"] += f"\ncolumns = {list(people.columns['lender'])}"
        run(tmp_path, f"twin{fold}", "", UNSCALED, part="-rest", **tested)
        with (tmp_path / "out" / "predictions.csv").open() as file:
            values = [float(line["value"]) for line in csv.DictReader(file)]
        each.append(roc_auc_score(people.y[folds == fold], values))
    assert found.evaluation.folds == pytest.approx(each, abs=1e-3)
    judged = int((folds > 0).sum())
    assert found.evaluation.together.rows == found.evaluation.alone.rows == judged
    assert found.evaluation.trained == int((folds == 0).sum())
    assert "2 folds, each later by month" in found.evaluation.rows_line


def test_by_time_the_first_fit_has_as_many_rows_as_a_party_wants(tmp_path, monkeypatch):
    write_people(tmp_path)
    before = int((folds_of(tmp_path, BY_TIME) == 0).sum())
    monkeypatch.setattr(FolderWorkplace, "least_rows", before + 1)
    with pytest.raises(PeerVisibleError, match=f"the first fold by time is trained on {before}"):
        run(tmp_path, "few", BY_TIME)
    monkeypatch.setattr(FolderWorkplace, "least_rows", before)
    run(tmp_path, "enough", BY_TIME)


def test_by_time_at_a_hidden_level_only_the_next_fold_is_predicted(tmp_path):
    write_people(tmp_path)
    found = run(tmp_path, "hidden", BY_TIME, OPEN + 'disclosure = "values"').evaluation
    assert found.together.rows == int((folds_of(tmp_path, BY_TIME) > 0).sum())
    assert len(found.folds) == 2


def test_with_open_features_folds_need_no_message_about_a_row(tmp_path):
    write_people(tmp_path)
    sent = []
    for name, top in (("folds", PLAIN), ("plain", "")):
        run(tmp_path, name, top)
        record = ModelStore(tmp_path / "out" / "bank" / "models").details(name).record
        sent.append({e.disclosure.name: e.bytes for e in record.ledger})
    assert sent[0].pop("agreement") > sent[1].pop("agreement")
    assert sent[0] == sent[1]
    assert sent[0]["phases"] >= ROWS * 64


def test_classes_are_spread_over_folds_and_groups_stay_together(tmp_path):
    people = write_people(tmp_path)
    folds = folds_of(tmp_path)
    shares = [people.y[folds == fold].mean() for fold in (1, 2, 3)]
    assert np.ptp(shares) < 1 / (ROWS // 3) + 1e-9
    grouped = folds_of(tmp_path, '[evaluation]\nfolds = 3\ngroup = "household"')
    homes = np.arange(ROWS) // 9
    assert all(len(set(grouped[homes == home])) == 1 for home in np.unique(homes))
    assert np.ptp(np.bincount(grouped)[1:]) <= 9


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("fdskl", OPEN + 'disclosure = "values"'),
        pytest.param(
            "fdskl",
            OPEN + 'disclosure = "sealed"\n' + SEALED.format("square"),
            marks=pytest.mark.slow,
        ),
        ("fdskl", FIXED + 'solver = "dsg"'),
        ("fdskl", OPEN + 'feature_map = "landmarks"'),
        ("avfkam", OPEN),
        pytest.param("kernel", "n_components = 64", marks=pytest.mark.slow),
        ("admm", 'scale = "standard"'),
    ],
)
def test_every_algorithm_has_folds(tmp_path, algorithm, settings):
    write_people(tmp_path)
    found = run(tmp_path, "model", FOLDS + "linear = true", settings, algorithm).evaluation
    assert found.together.rows == found.alone.rows == ROWS
    assert len(found.folds) == 3
    assert 0.5 < found.together.numbers["auc"].value < 1
    # ADMM is linear itself.
    assert (found.linear is None) == (algorithm == "admm")
    if found.linear is not None:
        assert 0.5 < found.linear.numbers["auc"].value < 1


def test_a_linear_model_is_beside_a_model_of_a_bent_truth(tmp_path):
    """Of a product of two parties' columns a linear model knows nothing."""
    write_people(tmp_path)
    lender, bank = (
        np.genfromtxt(tmp_path / f"{name}.csv", delimiter=",", names=True)
        for name in ("lender", "bank")
    )
    signs = [
        table[column] > np.median(table[column])
        for table, column in ((lender, "age"), (bank, "balance"))
    ]
    head, *lines = (tmp_path / "lender.csv").read_text().splitlines()
    cells = [f"{line},{int(a == b)}" for line, a, b in zip(lines, *signs, strict=True)]
    titles = head.replace("default", "before") + ",default"
    (tmp_path / "lender.csv").write_text("\n".join([titles, *cells]) + "\n")
    found = run(
        tmp_path,
        "bent",
        "[evaluation]\nfolds = 4\n",
        'n_components = 256\nscale = "quantile"\nalpha = 1e-3\n',
        lender='columns = ["age"]',
        bank='columns = ["balance"]',
        shop='columns = ["basket_value"]',
    ).evaluation
    value = {
        name: one.numbers["auc"].value
        for name, one in (("all", found.together), ("own", found.alone), ("line", found.linear))
    }
    assert value["all"] > 0.7
    assert abs(value["line"] - 0.5) < 0.12
    assert abs(value["own"] - 0.5) < 0.12


def test_a_leader_that_leaves_a_fold_out_is_refused(tmp_path, monkeypatch):
    real = row_parts.choose_parts
    monkeypatch.setattr(
        row_parts, "choose_parts", lambda place, rows: np.minimum(real(place, rows), 2)
    )
    write_people(tmp_path)
    with pytest.raises(AgreementError, match="leaves none for a part"):
        run(tmp_path, "two", PLAIN)


def test_a_leader_that_tells_each_party_other_folds_is_found_out(tmp_path, monkeypatch):
    real = Party.tell

    def tell(party, to, payload, disclosure):
        if disclosure.name == "held-out rows" and to == "shop":
            payload = np.roll(payload, 1)
        real(party, to, payload, disclosure)

    monkeypatch.setattr(Party, "tell", tell)
    write_people(tmp_path)
    with pytest.raises(AgreementError, match="settings"):
        run(tmp_path, "joined", PLAIN)


@pytest.fixture
def _quick(monkeypatch, quick_beats):
    monkeypatch.setattr(leader, "pause", lambda attempts: 0.1)


MANY = "most_passes = 200\n"


@pytest.mark.usefixtures("_quick")
def test_between_services_all_fits_are_shown_and_booked(tmp_path):
    begin(tmp_path, evaluation=FOLDS)
    policies = [tmp_path / name / "party.toml" for name in NAMES]
    for file in policies:
        file.write_text(file.read_text().replace("most_passes = 80", MANY))
    with trio(tmp_path) as world:
        digest = world.submit().digest
        world.record("bank", digest)
        shown = world["bank"].answer({"command": "show", "job": digest})["text"]
        world.done(digest)
        found = world.models("lender").details("credit").evaluation
        (booked,) = world["bank"].home.account.openings()
    assert found.together.rows == 160
    assert "3 folds, at random; each party learns which" in shown
    assert "fits: 3 folds, each without its part of the rows: each shows what training" in shown
    # The model and three folds of 12 values to 6 bits each, and predictions of the folds.
    assert (booked.values, booked.value_bits) == (4 * 12, 6)
    assert (booked.held_out_predictions, booked.predictions_of_fits) == (0, 3 * 3)
    assert booked.row_bits == 4 * 72 + 9 * 12


@pytest.mark.usefixtures("_quick")
def test_folds_smaller_than_a_policys_least_difference_are_refused(tmp_path):
    begin(tmp_path, 'disclosure = "open"', "[evaluation]\nfolds = 20\n")
    with trio(tmp_path) as world:
        digest = world.submit().digest
        record = world.wait("lender", digest, lambda one: one.final, "stops")
        assert "ask for fewer folds" in record.final.words


@pytest.mark.usefixtures("_quick")
def test_a_dealer_without_data_takes_part_in_folds(tmp_path):
    begin(
        tmp_path,
        'disclosure = { name = "values", dealer = "notary", max_passes = 12 }',
        "[parties.notary]\n" + PLAIN,
        names=WITH_NOTARY,
    )
    with trio(tmp_path, WITH_NOTARY) as world:
        world.done(world.submit().digest)
        assert world.models("lender").details("credit").evaluation.together.rows == 160
