"""Several fits on one pass of phases: the same as one by one, and nothing more on the wire."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from vertikal.algorithms.admm.algorithm import ADMM
from vertikal.algorithms.algorithm import Fit
from vertikal.algorithms.kernel_machine.algorithm import AVFKAM, FDSKL
from vertikal.algorithms.tuned.algorithm import KERNEL
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.estimators.simulation import Federation, simulate
from vertikal.party.party import Labels, digest
from vertikal.secure.keys.prg import derive_key

ROWS = 80
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 6))
Y = np.where(X[:, 0] * X[:, 3] + 0.2 * GENERATOR.normal(size=ROWS) > 0, 1.0, -1.0)[:, None]
NAMES = ("bank", "shop", "phone")
ALL = np.ones(ROWS, bool)


def settings_of(algorithm, label_parties=("bank",), **given):
    written = {"n_components": 32, "bandwidth": 2.0, "tol": 1e-6, "max_iter": 100, **given}
    return algorithm.read_settings(written, NAMES, label_parties)


def run(program, settings, rows=ALL):
    tables = {
        name: Table(name, ("a", "b"), X[rows][:, 2 * place : 2 * place + 2])
        for place, name in enumerate(NAMES)
    }
    labels = Labels(Y[rows], np.ones(int(rows.sum())))
    secrets = {name: derive_key(bytes(32), name) for name in NAMES}
    federation = Federation(
        tables, settings.label_parties, labels, secrets, digest(settings), "pads", 20.0
    )
    return simulate(federation, program)


def bytes_by_kind(outcome):
    found = {}
    for entry in outcome.ledger.entries():
        key = (entry.sender, entry.receiver, entry.disclosure.name)
        found[key] = found.get(key, 0) + entry.bytes
    return found


@pytest.mark.parametrize(
    ("algorithm", "label_parties", "feature_map"),
    [
        (FDSKL, ("bank",), "fourier"),
        (FDSKL, ("bank",), "landmarks"),
        (FDSKL, ("shop", "bank"), "fourier"),
        (AVFKAM, ("bank",), "fourier"),
    ],
)
def test_each_fit_is_that_of_a_run_of_its_own(algorithm, label_parties, feature_map):
    """The twins: a run for each penalty, and one without the rows that were held out."""
    base = settings_of(algorithm, label_parties, feature_map=feature_map)
    held = np.arange(ROWS) % 4 == 1
    paths = [msgspec.structs.replace(base, alpha=alpha) for alpha in (1e-1, 1e-2)]
    fits = [*(Fit(one, ALL) for one in paths), Fit(base, ~held)]
    outcome = run(lambda party: algorithm.fit_several(party, fits), base)
    leader = label_parties[0]
    for place, one in enumerate(paths):
        twin = run(lambda party, one=one: algorithm.train(party, one), one)
        for name in NAMES:
            mine, theirs = outcome.results[name][place].shard, twin.results[name]
            assert mine.settings == theirs.settings
            if name in label_parties:
                np.testing.assert_allclose(mine.coefficients, theirs.coefficients, atol=1e-4)
                np.testing.assert_allclose(mine.constant, theirs.constant, atol=1e-4)
            else:
                assert mine.coefficients is None
        assert all(outcome.results[name][place].held_out is None for name in NAMES)
    shards = {name: outcome.results[name][2].shard for name in NAMES}
    predicted = run(lambda party: algorithm.predict(party, shards[party.name]), base, held)
    f = outcome.results[leader][2].held_out
    np.testing.assert_allclose(f, predicted.results[leader], atol=1e-4)
    assert len(f) == held.sum()
    assert all(outcome.results[name][2].held_out is None for name in NAMES if name != leader)
    if feature_map == "fourier":
        # Landmarks may be other rows. Of the rows that were left out nothing is in the fit.
        alone = run(lambda party: algorithm.train(party, base), base, ~held)
        theirs = alone.results[leader].coefficients
        np.testing.assert_allclose(shards[leader].coefficients, theirs, atol=1e-4)


def test_feature_parties_send_no_more_than_for_one():
    base = settings_of(FDSKL)
    fits = [
        Fit(msgspec.structs.replace(base, alpha=10.0**-power), np.arange(ROWS) % 5 != power)
        for power in range(5)
    ]
    several = bytes_by_kind(run(lambda party: FDSKL.fit_several(party, fits), base))
    one = bytes_by_kind(run(lambda party: FDSKL.train(party, base), base))
    assert several == one


def test_features_are_shared_where_nothing_but_the_fit_differs():
    base = settings_of(FDSKL)

    def shares(**changes):
        return FDSKL.shares_features(base, msgspec.structs.replace(base, **changes))

    assert shares(alpha=1.0, loss="square", tol=1e-2, max_iter=7)
    assert not shares(bandwidth=3.0)
    assert not shares(kernel="laplace")
    assert not shares(n_components=33)
    assert not shares(scale="standard")
    assert not shares(seed=1)
    for given in ({"disclosure": "values"}, {"solver": "dsg"}, {"cache_size": 100_000}):
        one = settings_of(FDSKL, **given)
        assert not FDSKL.shares_features(one, one)
    pairs = settings_of(AVFKAM)
    assert AVFKAM.shares_features(pairs, msgspec.structs.replace(pairs, validation=0.2))
    with pytest.raises(InputError, match="share features"):
        KERNEL.fit_several(None, [])


def test_a_smaller_try_opens_fewer_values_too():
    base = settings_of(FDSKL, n_components=400, disclosure={"name": "values", "max_passes": 90})
    small = FDSKL.smaller(base, 0.25)
    assert (small.n_components, small.values.max_passes) == (100, 25)
    assert FDSKL.smaller(base, 0.01).n_components == 64
    assert FDSKL.smaller(settings_of(FDSKL, n_components=20), 0.1).n_components == 20


def test_what_is_linear_is_compared_with_nothing():
    algorithm, straight = FDSKL.linear(settings_of(FDSKL, disclosure="values"))
    assert (algorithm, straight.kernel, straight.level) == (FDSKL, "linear", "values")
    assert FDSKL.linear(straight) is None
    assert AVFKAM.linear(settings_of(AVFKAM))[1].loss == "squared_hinge"
    tuned = KERNEL.read_settings({"disclosure": "values"}, NAMES, ("bank",))
    assert KERNEL.linear(tuned)[1].level == "values"
    admm = ADMM.read_settings({}, NAMES, ("bank",))
    assert ADMM.linear(admm) is None
    assert ADMM.linear(msgspec.structs.replace(admm, kernel="gaussian"))[1] == admm
