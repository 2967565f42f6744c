"""Settings searched in a job: what is tried, on which rows, what it costs, opens and leaves."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.node.runs.measuring.test_evaluation import JOB, OPEN, ROWS, begin, run, write_people
from tests.node.services import trio
from tests.node.test_algorithms import SEALED
from tests.organisations import WITH_NOTARY
from vertikal.errors import AgreementError, InputError, PeerStopped
from vertikal.node.config.job_file import Job
from vertikal.node.config.job_fits import exposure_of, fits_of
from vertikal.node.config.search_plan import SearchPlan, SearchRound
from vertikal.node.models.model_card import card, describe
from vertikal.node.models.model_page import model_page
from vertikal.node.models.store import ModelStore
from vertikal.node.runs import leader
from vertikal.node.runs.measuring import search as searching
from vertikal.party.party import Party

BASE = 'n_components = 64\nscale = "standard"\n'
PENALTIES = "[search.settings]\nalpha = [1e6, 1e-2, 1e-3]\n"
HELD = "[evaluation]\nholdout = 0.25\nlinear = false\n"


@pytest.fixture
def _quick(monkeypatch, quick_beats):
    monkeypatch.setattr(leader, "pause", lambda attempts: 0.1)


def test_the_best_settings_make_the_model(tmp_path):
    """The twin: a job with these settings from the start, whose shards are the same."""
    write_people(tmp_path)
    found = run(tmp_path, "searched", HELD + PENALTIES, BASE)
    table = found.search
    values = {one.settings["alpha"]: one.value for one in table.tries}
    assert set(values) == {1e6, 1e-2, 1e-3}
    best = max(values, key=values.get)
    assert table.chosen == {"alpha": best}
    assert found.manifest.facts["settings"]["alpha"] == best
    twin = run(tmp_path, "twin", HELD, BASE + f"alpha = {best}\n")
    assert twin.search is None
    assert found.manifest.digest == twin.manifest.digest
    assert found.evaluation.together == twin.evaluation.together
    others = ModelStore(tmp_path / "out" / "bank" / "models").details("searched")
    assert others.search is None
    assert others.manifest.facts["settings"]["alpha"] == best


def test_bad_settings_are_seen_to_be_bad(tmp_path):
    """Of a bandwidth so narrow that all rows are strangers nothing can be learned."""
    write_people(tmp_path)
    top = "[search]\nshare = 1.0\n[search.settings]\nbandwidth = [1e-3, 5.0]\n"
    found = run(tmp_path, "searched", top, BASE).search
    bad, good = (one.value for one in found.tries)
    assert bad < good - 0.1
    assert found.chosen == {"bandwidth": 5.0}
    assert found.judged == ROWS // 4


def sent_by_bank(folder, name):
    record = ModelStore(folder / "out" / "bank" / "models").details(name).record
    return {entry.disclosure.name: entry.bytes for entry in record.ledger}


def test_a_path_of_penalties_costs_one_pass(tmp_path):
    write_people(tmp_path)
    sent = []
    for name, alphas in (("two", [1e-2, 1e-3]), ("three", [1e-2, 1e-3, 1e-4])):
        run(tmp_path, name, f"[search]\n[search.settings]\nalpha = {alphas}\n", BASE)
        sent.append(sent_by_bank(tmp_path, name))
    run(tmp_path, "bands", "[search]\n[search.settings]\nbandwidth = [4.0, 5.0, 6.0]\n", BASE)
    bands = sent_by_bank(tmp_path, "bands")
    assert sent[0] == sent[1]
    # Another bandwidth is another pass over the rows of a round, and none for its mean distance.
    assert bands["phases"] - sent[1]["phases"] > ROWS * 64


def test_rounds_keep_a_third_and_grow(tmp_path):
    write_people(tmp_path)
    top = "[search.settings]\nalpha = [1e-1, 1e-2, 1e-3]\nbandwidth = [2.0, 4.0, 8.0]\n"
    table = run(tmp_path, "nine", top, BASE).search
    first, second = ([one for one in table.tries if one.round == number] for number in (0, 1))
    assert (len(first), len(second)) == (9, 3)
    ranked = sorted(first, key=lambda one: -one.value)
    kept = [one.settings for one in ranked[:3]]
    assert all(one.settings in kept for one in second)
    assert max(second, key=lambda one: one.value).settings == table.chosen
    assert first[0].share < second[0].share == 0.5
    assert first[0].rows <= second[0].rows < ROWS


@pytest.mark.parametrize(
    ("algorithm", "settings", "tried"),
    [
        ("fdskl", OPEN + 'disclosure = "values"', "alpha = [1e-2, 1e-3]"),
        pytest.param(
            "fdskl",
            'scale = "standard"\ndisclosure = "sealed"\n' + SEALED.format("square"),
            "n_components = [32, 64]",
            marks=pytest.mark.slow,
        ),
        ("fdskl", BASE, 'kernel = ["gaussian", "laplace", "linear"]'),
        ("fdskl", BASE, 'loss = ["logistic", "smooth_hinge"]'),
        ("fdskl", BASE, 'solver = ["exact", "dsg"]\nfeature_map = ["fourier"]'),
        ("avfkam", BASE, 'loss = ["squared_hinge", "square"]'),
        pytest.param("kernel", "", "n_components = [32, 64]", marks=pytest.mark.slow),
        ("admm", 'scale = "standard"', "alpha = [1e-2, 1e-3]\nl1_ratio = [0.0, 0.5]"),
    ],
)
def test_every_algorithm_is_searched(tmp_path, algorithm, settings, tried):
    write_people(tmp_path)
    top = f"[evaluation]\n[search.settings]\n{tried}\n"
    found = run(tmp_path, "model", top, settings, algorithm)
    assert set(found.search.chosen) == {line.split(" = ")[0] for line in tried.splitlines()}
    assert found.evaluation.together.rows == ROWS // 5
    assert all(one.value is not None for one in found.search.tries)


def test_what_was_tried_is_shown(tmp_path):
    write_people(tmp_path)
    found = run(tmp_path, "shown", HELD + PENALTIES, BASE)
    said = describe(found.manifest, found.evaluation, found.search)
    assert dict(said)["chosen"].startswith(f"alpha = {found.search.chosen['alpha']}, of 3 comb")
    assert [title for title, _ in said].count("try") == 3
    told = card(found.manifest, found.evaluation, found.search)
    assert msgspec.convert(told["search"], type(found.search)) == found.search
    page = model_page(*found)
    assert "What was tried" in page
    assert page.count("alpha = 1000000.0") == 1


def write_job(path, top, settings=BASE, algorithm="fdskl"):
    path.write_text(
        JOB.format(
            top=top, settings=settings, algorithm=algorithm, part="", lender="", bank="", shop=""
        )
    )
    return path


@pytest.mark.parametrize(
    ("top", "words"),
    [
        ("[search]", r"search must be given with 'settings'|given with \[search.settings\]"),
        ("[search.settings]\nalpha = []", "a list of values"),
        ("[search.settings]\nalpha = 0.1", "settings must be"),
        ("[search.settings]\nalpha = [0.1]", "two combinations of settings at least"),
        ("[search.settings]\nalpha = [0.1, -1]", "search, alpha = -1: alpha must be"),
        ("[search.settings]\ncolour = [1, 2]", "settings must be some of .*got 'colour'"),
        ("[search.settings]\nseed = [1, 2]", "the same for all"),
        ("[search.settings]\ndisclosure = ['open', 'values']", "of one level of disclosure"),
        ("[search]\nshare = 2\n[search.settings]\nalpha = [1, 2]", "share must be a share"),
        ("[search]\ntries = 900\n[search.settings]\nalpha = [1, 2]", "tries must be a number"),
        ("[evaluation]\nfolds = 3\n[search.settings]\nalpha = [1, 2]", "left out with folds"),
    ],
)
def test_what_is_refused(tmp_path, top, words):
    with pytest.raises(InputError, match=words):
        Job.load(write_job(tmp_path / "job.toml", top.replace("'", '"')))


def test_more_combinations_than_tries_are_drawn_from():
    plan = SearchPlan(settings={name: list(range(10)) for name in "abcdefgh"}, tries=20)
    drawn = plan.candidates(5)
    assert len({tuple(one.values()) for one in drawn}) == 20
    assert drawn == plan.candidates(5) != plan.candidates(6)
    assert {one["a"] for one in drawn} <= set(range(10))
    assert plan.rounds(20) == [
        SearchRound(20, 0.055556),
        SearchRound(7, 0.166667),
        SearchRound(3, 0.5),
    ]


def test_all_that_a_search_may_open_is_added_up(tmp_path):
    """With values each try has directions of its own: a third as many open a third as much."""
    settings = 'n_components = 192\ndisclosure = "values"\n'
    plain = exposure_of(Job.load(write_job(tmp_path / "plain.toml", "", settings)))
    top = "[search.settings]\nalpha = [1e-2, 1e-3, 1e-4]\n"
    job = Job.load(write_job(tmp_path / "job.toml", top, settings))
    total = exposure_of(job)
    assert fits_of(job) == 4
    (one,), (all_,) = plain.opened, total.opened
    assert one.at_most.values == 192 // 4
    assert all_.at_most.values == 48 + 3 * 24
    assert all_.safe_passes == one.safe_passes + 3 * 24
    assert total.components == 192 + 3 * 96
    opened = exposure_of(
        Job.load(write_job(tmp_path / "open.toml", top, settings.replace("values", "open")))
    )
    # One pass serves all penalties.
    assert opened.components == 192 + 96


def test_tries_that_the_job_does_not_have_are_refused(tmp_path, monkeypatch):
    real = Party.broadcast

    def broadcast(party, payload, group, disclosure):
        if disclosure.name == "choice of the search" and party.leads:
            payload = np.array([7])
        return real(party, payload, group, disclosure)

    monkeypatch.setattr(Party, "broadcast", broadcast)
    write_people(tmp_path)
    with pytest.raises(AgreementError, match="expected 1 of those that were left"):
        run(tmp_path, "strange", PENALTIES, BASE)


VALUES = 'disclosure = { name = "values", value_bits = 6, max_passes = 12 }'
TRIED = "[search.settings]\nalpha = [1e-1, 1e-2, 1e-3]\n"


@pytest.mark.usefixtures("_quick")
def test_between_services_a_search_is_shown_and_booked(tmp_path):
    begin(tmp_path, VALUES, HELD + TRIED)
    with trio(tmp_path) as world:
        digest = world.submit().digest
        world.record("bank", digest)
        shown = world["bank"].answer({"command": "show", "job": digest})["text"]
        world.done(digest)
        found = world.models("lender").details("credit")
        shop = world.models("shop").show("credit").facts["settings"]["alpha"]
        (booked,) = world["bank"].home.account.openings()
    assert shop == found.search.chosen["alpha"]
    assert "search: alpha of [0.1, 0.01, 0.001]; everybody learns their numbers" in shown
    assert "fits: 3 tries of the search on 50% of rows and directions: each shows" in shown
    assert booked.values == 12 + 3 * 12
    assert (booked.held_out_predictions, booked.predictions_of_fits) == (3, 9)


@pytest.mark.usefixtures("_quick")
def test_a_policy_bounds_the_fits_of_a_job(tmp_path):
    begin(tmp_path, VALUES, TRIED)
    file = tmp_path / "lender" / "party.toml"
    file.write_text(file.read_text().replace("most_passes = 80", "most_fits = 3"))
    with trio(tmp_path) as world, pytest.raises(InputError, match=r"4 fits in one job, at most 3"):
        world.submit()


class BrokenOff:
    """A lender whose runs end after the first round of their search, so many times."""

    def __init__(self, monkeypatch, times):
        self.left, self.judged = times, 0
        real, judge = searching.judge_fits, searching.measure

        def fits(place, *rest):
            found = real(place, *rest)
            if place.me == "lender" and self.left:
                self.left -= 1
                raise PeerStopped("lender: cut off here")
            return found

        def measured(*arguments, **options):
            self.judged += 1
            return judge(*arguments, **options)

        monkeypatch.setattr(searching, "judge_fits", fits)
        monkeypatch.setattr(searching, "measure", measured)


@pytest.mark.usefixtures("_quick")
def test_tries_that_the_leader_has_are_not_made_again(tmp_path, monkeypatch):
    begin(tmp_path, VALUES, TRIED)
    BrokenOff(monkeypatch, 2)
    with trio(tmp_path) as world:
        digest = world.submit().digest
        world.done(digest)
        assert world.record("lender", digest).attempt == 3
        found = world.models("lender").details("credit")
        assert len(found.search.tries) == 3
        helped = [
            entry.bytes
            for entry in world.models("bank").details("credit").record.ledger
            if entry.disclosure.name == "phase shares"
        ]
    # The last run makes the model alone: 160 rows of 64 directions, not those of the tries.
    assert sum(helped) < 2 * 160 * 64


@pytest.mark.usefixtures("_quick")
def test_other_tries_in_a_later_run_are_refused(tmp_path, monkeypatch):
    begin(tmp_path, 'disclosure = "open"', TRIED)
    real, calls = Party.broadcast, []

    def broadcast(party, payload, group, disclosure):
        if disclosure.name == "choice of the search" and party.leads:
            calls.append(1)
            payload = np.array([len(calls) - 1])
        return real(party, payload, group, disclosure)

    monkeypatch.setattr(Party, "broadcast", broadcast)
    train = searching.algorithm_named("fdskl").__class__.train

    def broken(algorithm, party, settings, *rest):
        if party.name == "lender" and len(party.parties) > 1 and len(calls) == 1:
            raise PeerStopped("lender: cut off here")
        return train(algorithm, party, settings, *rest)

    monkeypatch.setattr(searching.algorithm_named("fdskl").__class__, "train", broken)
    with trio(tmp_path) as world:
        digest = world.submit().digest
        record = world.wait("lender", digest, lambda one: one.final, "stops")
        assert "goes on with other tries than in an earlier run" in record.final.words


@pytest.mark.usefixtures("_quick")
def test_a_dealer_without_data_takes_part_in_a_search(tmp_path):
    begin(
        tmp_path,
        'disclosure = { name = "values", dealer = "notary", max_passes = 12 }',
        "[parties.notary]\n" + TRIED,
        names=WITH_NOTARY,
    )
    with trio(tmp_path, WITH_NOTARY) as world:
        world.done(world.submit().digest)
        assert len(world.models("lender").details("credit").search.tries) == 3
