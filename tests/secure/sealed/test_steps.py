"""Each step of sealed features against its naive twin."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.running import run
from tests.conformance.uniformity import check_uniform
from tests.naive import hidden as naive_hidden
from tests.naive import sealed as naive
from tests.secure.hidden.hidden_run import NAMES, ROLES, cosines, draw_phases, pairs_of
from tests.secure.sealed.sealed_run import kept, seal, split
from vertikal.errors import InputError, SecrecyError
from vertikal.mesh import local_meshes
from vertikal.secure.hidden.dealing import Dealing
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree
from vertikal.secure.sealed import shared_product
from vertikal.secure.sealed.sealed_features import COSINE_BITS, MATRIX_BITS
from vertikal.secure.sealed.shared_truncation import SharedTruncation

ROWS, WIDTH = 40, 8
PHASES = draw_phases(ROWS, WIDTH)


def whole_cosines(session):
    """The shared matrix, from what the label party and the helper keep."""
    _, ada, hal = kept(session)
    return ada + hal


def test_the_shared_matrix_is_the_matrix_of_cosines():
    session = seal(PHASES, lambda part: np.zeros(1, np.uint64))
    shared = whole_cosines(session).view(np.int64) * 2.0**-MATRIX_BITS
    np.testing.assert_allclose(shared, cosines(PHASES), rtol=0, atol=2.0 ** (1 - COSINE_BITS))
    matrix = ROWS * WIDTH * 8
    assert {name: part.nbytes for name, part in session.parts.items()} == {
        "ada": 2 * matrix,
        "hal": 2 * matrix,
        "sue": 0,
        "tim": matrix,
    }


def test_the_shared_matrix_of_cosines_and_sines():
    vector = np.arange(2 * WIDTH)[:, None] << 10

    def program(part):
        return part.forward(split(vector, part))

    session = seal(PHASES, program, pairs=True, forward=1)
    shared = whole_cosines(session).view(np.int64)
    np.testing.assert_allclose(
        shared * 2.0**-MATRIX_BITS, pairs_of(PHASES), rtol=0, atol=2.0 ** (1 - COSINE_BITS)
    )
    assert np.array_equal(session.total(), shared @ vector)
    received = {
        step: sum(values.nbytes for values in arrays)
        for step, arrays in session.seen["hal"].items()
    }
    cells = ROWS * WIDTH
    assert received["tim: corrections"] == 2 * cells * 8
    assert received["ada: sum"] == received["sue: phases"] == cells


@pytest.mark.parametrize("kind", ["forward", "adjoint"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_products_are_exact_in_the_ring(kind, outputs):
    size = WIDTH if kind == "forward" else ROWS
    vectors = np.random.default_rng(1).integers(-(2**40), 2**40, (20, size, outputs))

    def program(part):
        multiply = part.forward if kind == "forward" else part.adjoint
        return np.array([multiply(split(v, part, i)) for i, v in enumerate(vectors)])

    session = seal(PHASES, program, outputs=outputs, **{kind: len(vectors)})
    matrix = whole_cosines(session).tolist()
    matrix = naive_hidden.transpose(matrix) if kind == "adjoint" else matrix
    for found, v in zip(session.total(), vectors, strict=True):
        exact = naive_hidden.product(matrix, v.tolist(), 64)
        assert found.view(np.uint64).tolist() == exact


def test_a_product_follows_the_formulas(monkeypatch):
    """With every mask known: both shares are those of the docstring, number by number."""
    taken = {}
    original = Dealing.seeds

    def seeds(self, what, peer=None):
        sequence = original(self, what, peer)
        take, fill = sequence.take, sequence.fill

        def took(shape, dtype):
            words = take(shape, dtype)
            taken.setdefault((threading.current_thread().name, what), words.copy())
            return words

        def filled(out):
            fill(out)
            taken.setdefault((threading.current_thread().name, what), out.copy())

        sequence.take, sequence.fill = took, filled
        return sequence

    monkeypatch.setattr(Dealing, "seeds", seeds)
    monkeypatch.setattr(shared_product, "AHEAD", 1)
    v = np.arange(WIDTH)[:, None]
    session = seal(PHASES, lambda part: part.forward(split(v, part)), forward=1)
    results = session.outcome.unwrap()
    shares = [split(v, session.parts[name]) for name in ("ada", "hal")]
    expected = naive.shared_product(
        whole_cosines(session).tolist(),
        (taken["ada", "mask"].tolist(), taken["hal", "mask"].tolist()),
        (shares[0][:, 0].tolist(), shares[1][:, 0].tolist()),
        (taken["ada", "forward"][:, 0].tolist(), taken["hal", "forward"][:, 0].tolist()),
        taken["ada", "dealt forward"][:, 0].tolist(),
    )
    assert (results["ada"][:, 0].tolist(), results["hal"][:, 0].tolist()) == expected
    assert not results["tim"].any()


def test_products_of_both_kinds_in_any_order():
    order = ["forward", "adjoint", "adjoint", *["forward"] * 9, *["adjoint"] * 11]

    def program(part):
        results = [np.zeros((0, 1), np.uint64)]
        for i, kind in enumerate(order):
            v = np.full((WIDTH if kind == "forward" else ROWS, 1), i + 1)
            multiply = part.forward if kind == "forward" else part.adjoint
            results.append(multiply(split(v, part, i)))
        return np.concatenate(results)

    session = seal(PHASES, program, forward=order.count("forward"), adjoint=order.count("adjoint"))
    C = whole_cosines(session).view(np.int64)
    expected = [
        (C.sum(axis=1) if kind == "forward" else C.sum(axis=0)) * (i + 1)
        for i, kind in enumerate(order)
    ]
    assert np.array_equal(session.total()[:, 0], np.concatenate(expected))


def truncated(values, bits, seed=3):
    """Both shares of values / 2^bits."""

    def work(mesh):
        keys = agree(mesh, prg.fresh_key(), job="j", version="1", settings_digest="s", rows=1)
        if mesh.me not in ROLES.names:
            return None
        part = SharedTruncation(mesh, keys, ROLES, Dealing(mesh, keys, ROLES))
        share = np.random.default_rng(seed).integers(0, 2**63, values.shape, np.uint64)
        share *= np.uint64(2)
        shares = {"ada": share, "hal": values.view(np.uint64) - share, "tim": share * np.uint64(0)}
        return part.drop(shares[mesh.me], bits)

    got = run(local_meshes(NAMES, 20.0), work).unwrap()
    assert not got["tim"].any()
    return (got["ada"] + got["hal"]).view(np.int64)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(-(2**62) + 1, 2**62 - 1), min_size=1, max_size=30),
    st.integers(1, 61),
    st.integers(0, 2**32),
)
def test_truncation_is_never_off_by_more_than_rounding(values, bits, seed):
    values = np.array([*values, 0, 2**62 - 1, -(2**62), -1, 1], np.int64)
    found = truncated(values, bits, seed)
    for value, result in zip(values.tolist(), found.tolist(), strict=True):
        assert result - (value >> bits) in (0, 1)
        # A number that needs no rounding is not rounded.
        assert value % 2**bits or result == value >> bits


def test_truncation_is_right_on_average_and_has_no_rare_failure():
    """Forty bits a number: cutting each share alone would fail once in 2^24 of these."""
    values = np.full(400_000, 2**40 + 2**14 + 2**12, np.int64)
    found = truncated(values, 16)
    assert set(np.unique(found).tolist()) == {2**24, 2**24 + 1}
    assert (found - 2**24).mean() == pytest.approx(5 / 16, abs=0.01)


@pytest.mark.parametrize("bits", [0, 62, -1])
def test_truncation_by_no_number_of_bits(bits):
    with pytest.raises(InputError, match="bits must be from 1 to 61"):
        truncated(np.ones(3, np.int64), bits)


def test_products_with_the_label_partys_factors():
    factors = np.random.default_rng(2).integers(-(2**20), 2**20, (ROWS, 2))
    values = np.random.default_rng(4).integers(-(2**30), 2**30, (3, ROWS, 2))

    def program(part):
        part.hold(factors.astype(np.int64).view(np.uint64) if part.is_label_party else None)
        return np.array([part.scale(split(v, part, i)) for i, v in enumerate(values)])

    session = seal(PHASES, program, factors=2)
    assert np.array_equal(session.total(), factors * values)
    assert not session.outcome.results["tim"].any()


def test_reveal_opens_to_the_label_party_alone_and_once():
    values = np.arange(ROWS)[:, None]

    def program(part):
        opened = part.reveal(split(values, part))
        with pytest.raises(SecrecyError, match=r"no opening, or no second one, was agreed"):
            part.reveal(split(values, part))
        return opened

    results = seal(PHASES, program, reveals=True).outcome.unwrap()
    assert np.array_equal(results["ada"], values)
    assert results["hal"] is results["tim"] is None


@pytest.mark.parametrize(("revealed", "noise"), [(24, 0), (24, 10), (64, 10)])
def test_reveal_opens_so_many_bits_and_no_more(revealed, noise):
    """Against the naive twin; what A adds to its share above them is not opened."""
    values = np.resize(np.arange(-(2**22), 2**22, 3_571), (ROWS, 80))

    def program(part):
        share = split(values, part)
        if part.is_label_party and revealed < 64:
            share = share + (np.uint64(5) << np.uint64(revealed))
        return part.reveal(share)

    agreed = {"reveals": True, "revealed_bits": revealed, "noise_bits": noise, "outputs": 80}
    session = seal(PHASES, program, **agreed)
    opened = session.outcome.unwrap()["ada"].view(np.int64)
    (sent,) = session.seen["ada"]["hal: reveal"]
    own = split(values, session.parts["ada"])
    for i, j in np.ndindex(*values.shape):
        assert opened[i, j] == naive.revealed(int(own[i, j]), int(sent[i, j]), revealed)
    gaps = opened - values
    assert gaps.min() >= -(2**noise // 2)
    assert gaps.max() < max(1, 2**noise // 2)
    assert (len(np.unique(gaps)) > 100) == (noise > 0)
    # Nothing but the lowest bits travels, and they are uniform.
    assert sent.max() < 2**revealed
    check_uniform([(sent & np.uint64(0xFFFF)).astype(np.uint16)])


def refused(part, act):
    """Each role is refused what was not agreed."""
    with pytest.raises(SecrecyError) as caught:
        act()
    return str(caught.value)


def test_nothing_is_revealed_where_that_was_not_agreed():
    def program(part):
        return refused(part, lambda: part.reveal(np.zeros((ROWS, 1), np.uint64)))

    session = seal(PHASES, program)
    for name, said in session.outcome.unwrap().items():
        expected = f"{name}: no opening, or no second one, was agreed; nothing was sent"
        assert said == (None if name == "sue" else expected)
    assert not [f for f in session.tape if f.header.tag.endswith("/reveal")]


def test_no_more_products_than_agreed():
    def program(part):
        part.forward(np.zeros((WIDTH, 1), np.uint64))
        return refused(part, lambda: part.forward(np.zeros((WIDTH, 1), np.uint64)))

    session = seal(PHASES, program, forward=1)
    for name, said in session.outcome.unwrap().items():
        expected = f"{name}: no forward product is left of those that were agreed; nothing was sent"
        assert said == (None if name == "sue" else expected)
    assert len([f for f in session.tape if f.header.tag.endswith("/masked forward")]) == 2


@pytest.mark.parametrize("names", [("ada", "hal", "tim"), (*NAMES, "zoe")], ids=len)
def test_any_number_of_parties(names):
    phases = draw_phases(ROWS, WIDTH, names=names, dtype="uint16")
    v = np.full((WIDTH, 1), 2**20)
    session = seal(
        phases,
        lambda part: part.forward(split(v, part)),
        roles=Roles("ada", "hal", "tim", names),
        forward=1,
    )
    found = session.total() * 2.0 ** (-20 - MATRIX_BITS)
    np.testing.assert_allclose(found, cosines(phases) @ np.ones((WIDTH, 1)), atol=0.05)
