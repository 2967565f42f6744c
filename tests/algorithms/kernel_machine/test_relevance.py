"""Sketches of gradients against gradients that are computed row by row; what the frames carry."""

from __future__ import annotations

import numpy as np
import pytest

from tests.algorithms.tuned.runs import NAMES, classes_of, columns_of, settings_of, trained
from tests.naive.tuned import central_differences
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.algorithms.kernel_machine.relevance import STEP, random_signs, relevance, sketch
from vertikal.algorithms.tuned import search
from vertikal.compute.open_operator import OpenOperator
from vertikal.data.tables import Table
from vertikal.errors import MeshError
from vertikal.estimators.simulation import Federation, simulate
from vertikal.kernels.random_features import FourierMap
from vertikal.kernels.spectral import kernel_named
from vertikal.mesh import local_meshes
from vertikal.mesh.recording import RecordingMesh, Tape
from vertikal.party.party import Labels, digest
from vertikal.ring.integers import Ring
from vertikal.secure.keys.prg import derive_key

ROWS, COLUMNS, WIDTH = 300, 5, 40
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, COLUMNS)) * [1.0, 0.2, 1.0, 3.0, 1.0]


def problem(kernel, outputs=1):
    """(directions, map, Φ, coefficients) of one party that holds everything, in 16 bits."""
    uniforms = GENERATOR.uniform(size=(COLUMNS, WIDTH))
    directions = kernel_named(kernel).directions(uniforms, None) / 2
    ring = Ring(16)
    offsets = GENERATOR.integers(0, 2**16, WIDTH).astype(ring.dtype)
    feature_map = FourierMap(ring, directions, offsets, WIDTH, functions="pair")
    operator = OpenOperator(feature_map, ROWS, feature_map.local(X))
    return directions, feature_map, operator, GENERATOR.normal(size=(2 * WIDTH, outputs))


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_many_sketches_give_the_second_moments_of_the_gradients(kernel, outputs):
    directions, feature_map, operator, coefficients = problem(kernel, outputs)
    exact = np.zeros(COLUMNS)
    for output in range(outputs):

        def f(x, output=output):
            return feature_map.decode(feature_map.local(x), np.float64) @ coefficients[:, output]

        exact += np.square(central_differences(f, X, STEP)).mean(axis=0)
    sketches = sketch(operator, coefficients, np.full(ROWS, 1 / ROWS), bytes(32), 4000)
    assert sketches.shape == (WIDTH, 4000)
    np.testing.assert_allclose(relevance(directions, sketches), np.sqrt(exact), rtol=0.08)


def test_a_few_sketches_are_enough_to_tell_columns_apart():
    directions, _, operator, coefficients = problem("gaussian")
    shares = np.full(ROWS, 1 / ROWS)
    exact = relevance(directions, sketch(operator, coefficients, shares, b"e" * 32, 4000))
    few = relevance(directions, sketch(operator, coefficients, shares, b"f" * 32, 32))
    np.testing.assert_allclose(few, exact, rtol=0.5)


def test_rows_count_by_their_shares():
    directions, _, operator, coefficients = problem("gaussian")
    shares = np.zeros(ROWS)
    shares[:3] = 1 / 3
    of_three = sketch(operator, coefficients, shares, bytes(32), 3000)
    alone = operator.with_elements(operator.cached[:3])
    same = sketch(alone, coefficients, np.full(3, 1 / 3), b"o" * 32, 3000)
    np.testing.assert_allclose(
        relevance(directions, of_three), relevance(directions, same), rtol=0.1
    )


def test_signs_are_fair_and_another_key_gives_others():
    signs = random_signs(bytes(32), 200, 50)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert abs(signs.mean()) < 0.05
    assert (signs != random_signs(b"1" * 32, 200, 50)).mean() > 0.4


def recorded(rows):
    settings = settings_of(n_components=16)
    tables, tape = columns_of(rows), Tape()
    meshes = {name: RecordingMesh(one, tape) for name, one in local_meshes(NAMES, 60).items()}
    trained(tables, classes_of(tables), settings, meshes=meshes)
    return settings, tape


def test_sketches_and_choices_are_all_that_is_new_and_carry_no_row():
    sizes = set()
    for rows in (60, 240):
        settings, tape = recorded(rows)
        sent = tape.arrays("broadcast/sketches")
        assert len(sent) == settings.rounds(rows) * (len(NAMES) - 1)
        for sketches in sent:
            assert sketches.shape == (settings.search_width(rows), settings.sketches())
            assert sketches.dtype == np.float32
        sizes.add(sum(sketches.nbytes for sketches in sent))
        told = {frame.header.tag.split("/")[1] for frame in tape if "broadcast" in frame.header.tag}
        assert told == {"bandwidth", "sketches", "choice"}
    assert len(sizes) == 1


def test_sketches_do_not_tell_the_labels_of_rows():
    """Other signs give other sketches of the same labels: no one of them is about a row."""
    directions, _, operator, coefficients = problem("gaussian")
    shares = np.full(ROWS, 1 / ROWS)
    first, second = (
        sketch(operator, coefficients, shares, key, 200) for key in (b"a" * 32, b"b" * 32)
    )
    correlation = np.corrcoef(first.ravel(), second.ravel())[0, 1]
    assert abs(correlation) < 0.05
    np.testing.assert_allclose(
        relevance(directions, first), relevance(directions, second), rtol=0.3
    )


@pytest.mark.parametrize(
    "wrong", [np.zeros((3, 8), np.float32), np.full((16, 8), np.nan, np.float32), np.zeros((16, 8))]
)
def test_sketches_of_another_shape_are_refused(wrong, monkeypatch):
    monkeypatch.setattr(
        search, "tell_sketches", lambda party, mine: dict.fromkeys(party.label_parties, wrong)
    )
    tables = columns_of(60)
    with pytest.raises(MeshError, match="sent sketches of shape"):
        trained(tables, classes_of(tables), settings_of(n_components=16))


@pytest.mark.parametrize("label_parties", [("bank",), ("shop", "bank")])
@pytest.mark.parametrize(
    "given", [{"scale": "standard"}, {"feature_map": {"name": "fourier", "functions": "pair"}}]
)
def test_owners_learn_of_their_columns_in_any_model(label_parties, given):
    """The twin: differences of predictions when one column moves by a part of its deviation."""
    names = ("bank", "shop")
    generator = np.random.default_rng(3)
    x = generator.normal(size=(200, 4)) * [1.0, 5.0, 0.1, 1.0]
    y = np.where(x[:, 0] + x[:, 1] / 10 + 2 * np.tanh(10 * x[:, 2]) > 0, 1.0, -1.0)[:, None]
    written = {"n_components": 64, "alpha": 1e-2, "bandwidth": 3.0, **given}
    settings = FDSKL.read_settings(written, names, label_parties)

    def run(program, rows):
        tables = {
            name: Table(name, ("a", "b"), rows[:, 2 * place : 2 * place + 2])
            for place, name in enumerate(names)
        }
        labels = Labels(y, np.ones(len(y)))
        secrets = {name: derive_key(bytes(32), name) for name in names}
        federation = Federation(
            tables, label_parties, labels, secrets, digest(settings), "pads", 20.0
        )
        return simulate(federation, program).results

    shards = run(lambda party: FDSKL.train(party, settings), x)
    found = run(lambda party: FDSKL.column_relevance(party, shards[party.name]), x)

    def f(rows):
        results = run(lambda party: FDSKL.predict(party, shards[party.name]), rows)
        return results[label_parties[0]][:, 0]

    exact = []
    for column in range(4):
        step = np.zeros(4)
        step[column] = STEP * x[:, column].std()
        slopes = (f(x + step) - f(x - step)) / (2 * STEP)
        exact.append(np.sqrt(np.mean(np.square(slopes))))
    for place, name in enumerate(names):
        own = np.array(exact[2 * place : 2 * place + 2])
        np.testing.assert_allclose(list(found[name].values()), own / own.max(), atol=0.25)
        assert max(found[name].values()) == 1.0
