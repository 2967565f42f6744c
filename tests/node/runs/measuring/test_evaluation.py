"""Models measured in the run that trains them: on which rows, against what, and what it opens."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from tests.node.services import trio
from tests.node.test_algorithms import SEALED
from tests.organisations import NAMES, RULE, WITH_NOTARY, lay_out, write_job
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.demo.credit import credit_population
from vertikal.errors import AgreementError, InputError, PeerStopped
from vertikal.node.config.job_file import Job
from vertikal.node.models.store import ModelStore
from vertikal.node.runs import leader
from vertikal.node.runs.checkpoint_folder import CheckpointFolder
from vertikal.node.runs.launch import check_tables, run_threads
from vertikal.node.runs.measuring import evaluation as evaluating
from vertikal.node.runs.measuring import row_parts
from vertikal.node.runs.workplaces import FolderWorkplace
from vertikal.node.storage.audit_log import read
from vertikal.node.storage.id_marks import MARK_BYTES
from vertikal.party.party import Party

ROWS, HELD = 240, 60
JOB = """
algorithm = "{algorithm}"
secret_seed = 1
timeout = 60
{top}
[settings]
{settings}
[parties.lender]
table = "lender{part}.csv"
label = "default"
{lender}
[parties.bank]
table = "bank{part}.csv"
{bank}
[parties.shop]
table = "shop{part}.csv"
{shop}
"""
OPEN = 'n_components = 64\nscale = "standard"\n'
BY_TIME = '[evaluation]\nholdout = 0.25\ntime = "month"'


def write_people(folder, *, shuffled=""):
    """Tables of all rows, and of the first and the last part of them by the lender's month."""
    people = credit_population(ROWS, 3)
    order = np.random.default_rng(0).permutation(ROWS)
    for name, columns in people.columns.items():
        cells = people.X[:, people.numbers()[name]]
        if name == shuffled:
            cells = cells[order]
        titles = list(columns)
        if name == "lender":
            income = cells @ np.ones(cells.shape[1]) + np.arange(ROWS) % 7
            cells = np.column_stack(
                [cells, people.y, np.arange(ROWS), np.arange(ROWS) // 9, income]
            )
            titles += ["default", "month", "household", "income"]
        for part, rows in (("", slice(None)), ("-old", slice(-HELD)), ("-new", slice(-HELD, None))):
            np.savetxt(
                folder / f"{name}{part}.csv",
                cells[rows],
                "%.10g",
                ",",
                header=",".join(titles),
                comments="",
            )
    return people


def run(folder, name, top=BY_TIME, settings=OPEN, algorithm="fdskl", part="", **parts):
    """Run a job and return the evaluation that its lender stored."""
    path = folder / f"{name}.toml"
    columns = list(credit_population(2, 3).columns["lender"])
    given = {"lender": f"columns = {columns}", "bank": "", "shop": "", **parts}
    path.write_text(JOB.format(top=top, settings=settings, algorithm=algorithm, part=part, **given))
    job = Job.load(path)
    run_threads(path, job, folder / "out", lambda progress: None)
    return ModelStore(folder / "out" / "lender" / "models").details(name)


def test_the_measures_are_those_of_a_model_that_never_saw_the_rows(tmp_path):
    """The twin: a job on the first rows alone, which predicts a table of the last ones."""
    people = write_people(tmp_path)
    manifest, account, found, _ = run(tmp_path, "whole")
    tested = {name: f'test = "{name}-new.csv"' for name in NAMES}
    columns = list(people.columns["lender"])
    tested["lender"] += f"\ncolumns = {columns}"
    twin, _, nothing, _ = run(tmp_path, "twin", top="", part="-old", **tested)
    assert nothing is None
    assert manifest.digest == twin.digest
    with (tmp_path / "out" / "predictions.csv").open() as file:
        values = [float(line["value"]) for line in csv.DictReader(file)]
    outcome = people.y[-HELD:]
    assert found.together.rows == HELD
    assert found.trained == ROWS - HELD
    assert found.together.numbers["auc"].value == pytest.approx(roc_auc_score(outcome, values))
    chances = 1 / (1 + np.exp(-np.array(values)))
    assert found.together.numbers["log_loss"].value == pytest.approx(log_loss(outcome, chances))
    assert manifest.facts["rows"], manifest.facts["held_out"] == (ROWS - HELD, HELD)
    assert manifest.facts["parties"]["bank"] == {"table": "bank.csv"}
    sent = {
        (entry.sender, entry.receiver)
        for entry in account.ledger
        if entry.disclosure.name == "held-out rows"
    }
    assert sent == {("lender", "bank"), ("lender", "shop")}
    others = ModelStore(tmp_path / "out" / "bank" / "models")
    assert others.details("whole")[2] is None
    assert others.show("whole").facts["held_out"] == HELD


def test_alone_is_of_the_label_partys_columns_and_together_of_all(tmp_path):
    write_people(tmp_path)
    first = run(tmp_path, "first")[2]
    write_people(tmp_path, shuffled="bank")
    second = run(tmp_path, "second")[2]
    assert second.alone == first.alone
    assert second.together != first.together
    assert first.first_line == (
        f"AUC {first.together.numbers['auc'].value:.3f} "
        f"({first.together.numbers['auc'].low:.3f} to {first.together.numbers['auc'].high:.3f}) "
        f"together, {first.alone.numbers['auc'].value:.3f} with the columns of lender alone, "
        f"{first.linear.numbers['auc'].value:.3f} by a linear model of all"
    )


def test_a_label_party_that_knows_all_by_itself_sees_that(tmp_path):
    write_people(tmp_path)
    path = tmp_path / "lender.csv"
    table = np.genfromtxt(path, delimiter=",", names=True)
    known = table["age"] > np.median(table["age"])
    head, *lines = path.read_text().splitlines()
    titled = head.replace("default", "before") + ",default"
    cells = [f"{line},{int(one)}" for line, one in zip(lines, known, strict=True)]
    path.write_text("\n".join([titled, *cells]) + "\n")
    found = run(tmp_path, "known", lender='columns = ["age"]')[2]
    assert found.alone.numbers["auc"].value > 0.99
    assert found.alone.numbers["accuracy"].value > 0.9


def test_a_party_that_brings_noise_contributes_nothing(tmp_path):
    people = write_people(tmp_path)
    noise = np.random.default_rng(5).normal(size=(ROWS, 1))
    np.savetxt(tmp_path / "shop.csv", noise, "%.10g", header="noise", comments="")
    found = run(tmp_path, "noisy", top=BY_TIME + "\ncontributions = true")[2]
    assert set(found.contributions) == set(people.columns)
    assert found.contributions["bank"] > found.contributions["shop"] + 0.02
    assert abs(found.contributions["shop"]) < 0.1


def test_each_owner_learns_which_of_its_columns_matter(tmp_path):
    """A column of noise beside those that the model uses, at the bank; nobody else is told."""
    write_people(tmp_path)
    path = tmp_path / "bank.csv"
    head, *lines = path.read_text().splitlines()
    noise = np.random.default_rng(5).normal(size=ROWS)
    cells = [f"{line},{one:.6f}" for line, one in zip(lines, noise, strict=True)]
    path.write_text("\n".join([f"{head},noise", *cells]) + "\n")
    settings = OPEN + "alpha = 0.1\n"
    found = run(tmp_path, "columns", BY_TIME + "\ncolumns = true", settings)
    bank = ModelStore(tmp_path / "out" / "bank" / "models").details("columns")
    told = [one.rsplit(" ", 1) for one in bank.manifest.facts["relevance"].split(", ")]
    values = {name: float(value) for name, value in told}
    assert list(values) == sorted(values, key=lambda name: -values[name])
    assert max(values.values()) == 1.0
    assert values["noise"] < 0.6
    assert "noise" not in str(found.manifest.facts)
    assert "age" in found.manifest.facts["relevance"]
    sent = {
        (entry.sender, entry.receiver)
        for record in (found.record, bank.record)
        for entry in record.ledger
        if entry.disclosure.name == "sketches"
    }
    assert sent == {("lender", "bank"), ("lender", "shop")}
    assert "relevance" not in run(tmp_path, "plain").manifest.facts


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("fdskl", OPEN + 'disclosure = "values"'),
        ("fdskl", OPEN + 'disclosure = "sealed"\n' + SEALED.format("square")),
        ("avfkam", OPEN),
        ("kernel", "n_components = 64"),
        ("admm", 'scale = "standard"'),
    ],
)
def test_every_algorithm_is_evaluated(tmp_path, algorithm, settings):
    write_people(tmp_path)
    found = run(tmp_path, "model", "[evaluation]\ncontributions = true", settings, algorithm)[2]
    assert found.together.rows == found.alone.rows == ROWS // 5
    assert 0.4 < found.alone.numbers["auc"].value < 1
    assert set(found.contributions) == set(NAMES)


def test_numbers_are_measured_by_what_they_explain(tmp_path):
    write_people(tmp_path)
    settings = OPEN + 'regression = true\nloss = "square"'
    path_job = JOB.replace('"default"', '"income"')
    columns = list(credit_population(2, 3).columns["lender"])
    parts = {"lender": f"columns = {columns}", "bank": "", "shop": ""}
    for name, top, part in (("whole", BY_TIME, ""), ("twin", "", "-old")):
        if part:
            parts = {key: f'{value}\ntest = "{key}-new.csv"' for key, value in parts.items()}
        path = tmp_path / f"{name}.toml"
        path.write_text(
            path_job.format(algorithm="fdskl", top=top, settings=settings, part=part, **parts)
        )
        run_threads(path, Job.load(path), tmp_path / "out", lambda progress: None)
    found = ModelStore(tmp_path / "out" / "lender" / "models").details("whole")[2]
    with (tmp_path / "out" / "predictions.csv").open() as file:
        values = [float(line["value"]) for line in csv.DictReader(file)]
    truth = np.genfromtxt(tmp_path / "lender-new.csv", delimiter=",", names=True)["income"]
    assert found.together.main == "r2"
    assert found.together.numbers["r2"].value == pytest.approx(r2_score(truth, values))


def test_several_classes_are_measured_by_name(tmp_path):
    write_people(tmp_path)
    path = tmp_path / "lender.csv"
    head, *lines = path.read_text().splitlines()
    names = ("gold", "silver", "none")
    cells = [f"{line},{names[number * 7 % 3]}" for number, line in enumerate(lines)]
    path.write_text("\n".join([f"{head},grade", *cells]) + "\n")
    columns = list(credit_population(2, 3).columns["lender"])
    listed = f"columns = {columns}\nclasses = {list(names)}"
    text = JOB.replace('"default"', '"grade"').format(
        algorithm="fdskl", top=BY_TIME, settings=OPEN, part="", lender=listed, bank="", shop=""
    )
    job = tmp_path / "grades.toml"
    job.write_text(text)
    run_threads(job, Job.load(job), tmp_path / "out", lambda progress: None)
    found = ModelStore(tmp_path / "out" / "lender" / "models").details("grades")[2]
    assert tuple(found.together.classes) == names
    assert [one.rows for one in found.together.classes.values()] == [HELD // 3] * 3
    each = [one.numbers["auc"].value for one in found.together.classes.values()]
    assert found.together.numbers["auc"].value == pytest.approx(np.mean(each))
    assert 0 < found.together.numbers["accuracy"].value < 1


def test_rows_of_one_group_are_on_one_side(tmp_path):
    write_people(tmp_path)
    path = tmp_path / "job.toml"
    top = '[evaluation]\ngroup = "household"'
    path.write_text(
        JOB.format(algorithm="fdskl", top=top, settings=OPEN, part="", lender="", bank="", shop="")
    )
    place = FolderWorkplace("lender", Job.load(path), path)
    held = row_parts.choose_parts(place, np.arange(ROWS)) == row_parts.HELD
    groups = np.arange(ROWS) // 9
    assert not set(groups[held]) & set(groups[~held])
    assert 0.1 < held.mean() < 0.3
    assert "household" not in place.table.columns
    assert "month" in place.table.columns


@pytest.mark.parametrize(
    ("top", "settings", "words"),
    [
        ("[evaluation]\nholdout = 1.5", OPEN, "holdout must be a share between 0 and 1"),
        ("[evaluation]\nfolds = 1", OPEN, "folds must be a number from 2 to 20"),
        ("[evaluation]\nfolds = 5\nholdout = 0.3", OPEN, "not with both"),
        ("[evaluation]\nfolds = 5\ncontributions = true", OPEN, "false with folds"),
        ("[evaluation]\nfolds = 5\ncolumns = true", OPEN, "columns must be false with folds"),
        ("[evaluation]\ncolumns = true", OPEN + 'disclosure = "values"', "open Fourier features"),
        ("[evaluation]\ncolumns = true", OPEN + 'feature_map = "landmarks"', "open Fourier"),
        ('[evaluation]\ngroup = "a"\ntime = "b"', OPEN, "not by both"),
        ('[evaluation]\ntime = "default"', OPEN, "by another column than the label"),
        ('[evaluation]\ntime = "year"', OPEN, "by one of the columns"),
        (
            "[evaluation]",
            "max_iter = 1\n[settings.privacy]\nepsilon = 1.0\ndelta = 1e-5",
            "left out with differential privacy",
        ),
    ],
)
def test_what_is_refused_before_anything_is_sent(tmp_path, top, settings, words):
    write_people(tmp_path)
    path = tmp_path / "job.toml"
    algorithm = "admm" if "privacy" in settings else "fdskl"
    columns = 'columns = ["age"]'
    path.write_text(
        JOB.format(
            algorithm=algorithm,
            top=top,
            settings=settings,
            part="",
            lender=columns,
            bank="",
            shop="",
        )
    )
    with pytest.raises(InputError, match=words):
        check_tables(path, Job.load(path))


def test_a_leader_that_tells_each_party_other_rows_is_found_out(tmp_path, monkeypatch):
    """It would join the columns of one person at the bank with those of another at the shop."""
    real = Party.tell

    def tell(party, to, payload, disclosure):
        if disclosure.name == "held-out rows" and to == "shop":
            payload = np.roll(payload, 1)
        real(party, to, payload, disclosure)

    monkeypatch.setattr(Party, "tell", tell)
    write_people(tmp_path)
    with pytest.raises(AgreementError, match="settings"):
        run(tmp_path, "joined")


EVALUATED = "[evaluation]\nholdout = 0.25\n"
VALUES = 'disclosure = { name = "values", value_bits = 6, max_passes = 12 }'


@pytest.fixture
def _quick(monkeypatch, quick_beats):
    monkeypatch.setattr(leader, "pause", lambda attempts: 0.1)


def begin(root, settings=VALUES, evaluation=EVALUATED, **options):
    lay_out(root, 160, RULE, ("open", "values", "sealed"), **options)
    write_job(root, directions=64, settings=settings, rest=evaluation)


@pytest.mark.usefixtures("_quick")
def test_between_services_the_split_is_agreed_shown_and_logged(tmp_path):
    begin(tmp_path)
    with trio(tmp_path) as world:
        digest = world.submit().digest
        world.record("bank", digest)
        shown = world["bank"].answer({"command": "show", "job": digest})["text"]
        world.done(digest)
        found = world.models("lender").details("credit")[2]
        (booked,) = world["bank"].home.account.openings()
        logged = list(read(tmp_path / "bank" / "store" / "audit.log"))
        (marks,) = (tmp_path / "bank" / "store" / "intersections").glob("[!.]*-*")
        compared = len(marks.read_bytes()) // MARK_BYTES
    assert found.together.rows == 40
    # Models are compared by the rows that they were made of.
    assert found.trained == compared == 120
    assert found.together.numbers["auc"].value > 0.5
    assert "25% of them, at random; each party learns which of its rows these are" in shown
    assert "each row held out is predicted 1 time, 12 bits about a row held out, 3 times" in shown
    assert (booked.rows, booked.held_out_predictions, booked.row_bits) == (160, 3, 72)
    words = [line.facts["words"] for line in logged if line.event == "held out"]
    assert words == ["40 of 160 common rows, for evaluation"]


def offer_months(root, cell="{}"):
    """Give the lender's table a column of months, by which rows may be held out."""
    table, file = (root / "lender" / name for name in ("people.csv", "party.toml"))
    head, *lines = table.read_text().splitlines()
    cells = [f"{line},{cell.format(number // 10)}" for number, line in enumerate(lines)]
    table.write_text("\n".join([f"{head},month", *cells]) + "\n")
    file.write_text(file.read_text().replace("labels = ", 'splits = ["month"]\nlabels = '))


@pytest.mark.usefixtures("_quick")
def test_between_services_rows_are_held_out_by_an_offered_column(tmp_path):
    begin(tmp_path, 'disclosure = "open"', BY_TIME)
    with trio(tmp_path) as world, pytest.raises(InputError, match=r"offers no column 'month'"):
        world.submit()
    offer_months(tmp_path)
    with trio(tmp_path) as world:
        world.done(world.submit().digest)
        manifest, _, found, _ = world.models("lender").details("credit")
    assert 20 <= found.together.rows <= 60
    assert found.trained + found.together.rows == 160
    assert found.way == "the last by month"
    assert "month" not in manifest.facts["columns"]


def test_a_column_without_order_is_refused_when_the_job_is_submitted(tmp_path, quick_beats):
    begin(tmp_path, 'disclosure = "open"', BY_TIME)
    offer_months(tmp_path, "31.{}.2024")
    with trio(tmp_path) as world, pytest.raises(InputError, match="2024-01-31"):
        world.submit()


@pytest.mark.usefixtures("_quick")
def test_a_dealer_without_data_learns_how_many_rows_are_held_out(tmp_path):
    begin(
        tmp_path,
        'disclosure = { name = "values", dealer = "notary", max_passes = 12 }',
        "[parties.notary]\n" + EVALUATED,
        names=WITH_NOTARY,
    )
    with trio(tmp_path, WITH_NOTARY) as world:
        world.done(world.submit().digest)
        found = world.models("lender").details("credit")[2]
        assert world.models("notary").show("credit").facts["held_out"] == 40
    assert found.together.rows == 40


class BrokenOff:
    """A lender whose runs end when it has predictions, so many times."""

    def __init__(self, monkeypatch, times):
        self.left, self.predicted = times, 0
        alone, predict = evaluating.learn_alone, FDSKL.predict

        def learn(*arguments):
            if self.left:
                self.left -= 1
                raise PeerStopped("lender: cut off here")
            return alone(*arguments)

        def predicts(algorithm, party, shard):
            self.predicted += party.name == "lender" and len(party.parties) > 1
            return predict(party, shard)

        monkeypatch.setattr(evaluating, "learn_alone", learn)
        monkeypatch.setattr(type(FDSKL), "predict", predicts)


@pytest.mark.usefixtures("_quick")
def test_predictions_are_not_opened_again_in_a_later_run(tmp_path, monkeypatch):
    begin(tmp_path)
    broken = BrokenOff(monkeypatch, 2)
    with trio(tmp_path) as world:
        digest = world.submit().digest
        world.done(digest)
        assert world.record("lender", digest).attempt == 3
        assert world.models("lender").details("credit")[2].together.rows == 40
    assert broken.predicted == 1


@pytest.mark.usefixtures("_quick")
def test_predictions_that_are_lost_are_opened_three_times_and_no_more(tmp_path, monkeypatch):
    begin(tmp_path)
    broken = BrokenOff(monkeypatch, 9)
    real = CheckpointFolder.read
    monkeypatch.setattr(
        CheckpointFolder,
        "read",
        lambda self, name: None if name.startswith("held-out") else real(self, name),
    )
    with trio(tmp_path) as world:
        digest = world.submit().digest
        record = world.wait("lender", digest, lambda one: one.final, "stops")
        assert "has predicted the held-out rows of this job 3 times" in record.final.words
    assert broken.predicted == 3


@pytest.mark.usefixtures("_quick")
def test_other_rows_held_out_in_a_later_run_are_refused(tmp_path, monkeypatch):
    begin(tmp_path)
    BrokenOff(monkeypatch, 1)
    real, calls = row_parts.choose_parts, []

    def choose(place, rows):
        calls.append(1)
        parts = real(place, rows)
        return parts if len(calls) == 1 else 1 - parts

    monkeypatch.setattr(row_parts, "choose_parts", choose)
    with trio(tmp_path) as world:
        digest = world.submit().digest
        record = world.wait("lender", digest, lambda one: one.final, "stops")
        assert "the held-out rows are not those of an earlier run" in record.final.words


@pytest.mark.usefixtures("_quick")
def test_a_policys_least_rows_are_rows_of_training(tmp_path):
    begin(tmp_path, evaluation="[evaluation]\nholdout = 0.95\n")
    with trio(tmp_path) as world:
        digest = world.submit().digest
        record = world.wait("lender", digest, lambda one: one.final, "stops")
        assert "takes part with 20 rows of training at least" in record.final.words
