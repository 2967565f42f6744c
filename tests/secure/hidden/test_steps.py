"""Each step of hidden phases against its naive twin, number by number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.conformance.running import run
from tests.naive import hidden as naive
from tests.secure.hidden.hidden_run import (
    NAMES,
    ROLES,
    cosines,
    draw_phases,
    hide,
    pairs_of,
    reading,
)
from vertikal.errors import InputError, PassesUsedUp
from vertikal.mesh import local_meshes
from vertikal.ring.integers import Ring
from vertikal.ring.ring_matrix import KINDS
from vertikal.secure.hidden import opening_noise
from vertikal.secure.hidden.dealing import Dealing, dealt_keys, draw_keys
from vertikal.secure.hidden.fixed_point import FixedPointProducts
from vertikal.secure.hidden.openings import OPENED_BITS
from vertikal.secure.hidden.phase_shares import PhaseShares
from vertikal.secure.hidden.private_product import PrivateProduct
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.hidden.row_block import RowBlock
from vertikal.secure.hidden.trigonometric import TrigonometricShares
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree
from vertikal.secure.keys.seeds import SeedSequence

SHAPE = (6, 5)
KNOWN = draw_keys(ROLES)
every_word = pytest.mark.parametrize("bits", [32, 64])


@pytest.fixture(autouse=True)
def known_keys(monkeypatch):
    """A dealer whose keys the test knows, too."""
    monkeypatch.setattr("vertikal.secure.hidden.dealing.draw_keys", lambda roles: KNOWN)


def known_seeds(peer, what, roles=ROLES):
    """The seeds that the dealer has in common with ``peer``, once more."""
    return SeedSequence(dealt_keys("tim", KNOWN), peer, what, *roles.purpose)


def at_roles(work):
    """Run ``work(mesh, keys)`` at all four; results, and what each received."""

    def agreed(mesh):
        keys = agree(mesh, prg.fresh_key(), job="j", version="1", settings_digest="s", rows=1)
        return work(mesh, keys)

    with reading() as seen:
        return run(local_meshes(NAMES, 20.0), agreed).unwrap(), seen


def label_partys_words(shape):
    """A's shares of cos σ and sin σ mod 2^40: four bytes of each, and then the fifth of all."""
    seeds = known_seeds("ada", "cosines")
    words = []
    for _ in range(2):
        raw = seeds.take((5, *shape), np.uint8).tobytes()
        low, cells = np.frombuffer(raw, "<u4", shape[0] * shape[1]), shape[0] * shape[1]
        high = np.frombuffer(raw, np.uint8, offset=4 * cells)
        words.append((low.astype(np.uint64) + high.astype(np.uint64) * 2**32).reshape(shape))
    return words


def test_shares_of_the_phase():
    phases = draw_phases(*SHAPE)
    masks = {}

    def work(mesh, keys):
        if mesh.me == "sue":
            seeds = SeedSequence(keys, "ada", "phase shares", *ROLES.purpose)
            masks["sue"] = seeds.take(SHAPE, np.uint8)
        return PhaseShares(mesh, keys, ROLES).share(phases[mesh.me].copy())

    got, seen = at_roles(work)
    assert got["sue"] is got["tim"] is None
    expected = naive.shares(
        *(phases[name].tolist() for name in ("ada", "hal")),
        [phases["sue"].tolist()],
        [masks["sue"].tolist()],
        8,
    )
    assert (got["ada"].tolist(), got["hal"].tolist()) == expected
    assert {name: list(steps) for name, steps in seen.items()} == {"hal": ["sue: phases"]}


@every_word
@pytest.mark.parametrize("phase", ["uint8", "uint16"])
@pytest.mark.parametrize("pairs", [False, True])
def test_shares_of_the_cosine(bits, phase, pairs):
    phases = draw_phases(*SHAPE, dtype=phase, names=("ada", "hal", "tim"))
    fixed = FixedPointProducts(Ring(bits))
    rho = {}

    def work(mesh, keys):
        if mesh.me == "sue":
            return None
        dealing = Dealing(mesh, keys, ROLES)
        if mesh.me == "tim":
            rho["tim"] = sum(
                known_seeds(peer, "half").take(SHAPE, phase) for peer in ("ada", "hal")
            )
        shares = TrigonometricShares(
            mesh, keys, ROLES, dealing, 8 * np.dtype(phase).itemsize, fixed, pairs=pairs
        )
        mine = phases[mesh.me].copy()
        act = {
            "ada": shares.open_as_label_party,
            "hal": shares.open_as_helper,
            "tim": shares.deal,
        }
        return act[mesh.me](mine)

    got, _ = at_roles(work)
    total = (got["ada"] + got["hal"]).view(f"int{bits}")
    assert got["ada"].dtype == got["hal"].dtype == fixed.ring.dtype
    if bits == 32:
        own = label_partys_words(SHAPE)
    theta = np.add.reduce(list(phases.values()), dtype=phase)
    sigma = (rho["tim"] - phases["tim"]).astype(phase)
    for at in np.ndindex(SHAPE):
        # The dealer's phases are in σ: m = θ + σ.
        of = int(theta[at]), int(sigma[at]), 8 * np.dtype(phase).itemsize, fixed.table_bits
        exact = {at: naive.cosine(*of)}
        if pairs:
            exact[at[0], SHAPE[1] + at[1]] = naive.sine(*of)
        for place, number in exact.items():
            if bits == 64:
                assert int(total[place]) == number
                continue
            m = (of[0] + of[1]) % 2 ** of[2]
            turn = (naive.table(8, of[2])[m], naive.table(8, of[2], math.sin)[m])
            turn = turn if place == at else (turn[1], -turn[0])
            share = sum(t * int(word[at]) for t, word in zip(turn, own, strict=True)) % 2**40
            assert int(got["ada"][place]) == naive.rounded_share(share)
            assert int(got["hal"][place]) == naive.rounded_share((number - share) % 2**40)
            # Whatever the shares are, what they add up to is off by one unit at most.
            assert abs(int(total[place]) - number / 256) <= 1
    tolerance = 2.0 ** (1 - fixed.table_bits)
    expected = pairs_of(phases) if pairs else cosines(phases)
    np.testing.assert_allclose(
        total * 2.0**-fixed.matrix_bits, expected, rtol=0, atol=tolerance, strict=True
    )


@every_word
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("part_of", [None, lambda matrix: matrix], ids=["all", "some"])
def test_the_private_product(bits, kind, part_of, monkeypatch):
    dtype = np.dtype(f"uint{bits}")
    generator = np.random.default_rng(1)
    own, helpers = (
        generator.integers(0, 2**bits, SHAPE, dtype=dtype, endpoint=False)
        if bits == 32
        else generator.integers(0, np.iinfo(dtype).max, SHAPE, dtype=dtype)
        for _ in range(2)
    )
    size, length = SHAPE[::-1] if kind == "forward" else SHAPE
    v = generator.integers(0, 2**31, (size, 2)).astype(dtype)
    drawn = {}
    random_words = generator.integers(0, np.iinfo(dtype).max, (length, 2), dtype=dtype)
    monkeypatch.setattr(opening_noise, "uniform_elements", lambda *_, **__: random_words.copy())
    # The helper's noise: uniform below the bits that the label party may learn, around zero.
    noise = random_words % dtype.type(2 ** (bits - OPENED_BITS))
    noise -= dtype.type(2 ** (bits - OPENED_BITS - 1))

    def work(mesh, keys):
        if mesh.me == "sue":
            return None
        dealing = Dealing(mesh, keys, ROLES)
        if mesh.me == "tim":
            of = f"vectors/{kind}/{'all' if part_of is None else 'some'}/2"
            vectors = known_seeds("ada", of)
            drawn["x"] = vectors.take((size, 2), dtype).tolist()
            drawn["u"] = vectors.take((length, 2), dtype).tolist()
            drawn["y"] = known_seeds("hal", "matrix", ROLES.of_rows(0)).take(SHAPE, dtype).tolist()
        part = PrivateProduct(
            mesh, keys, ROLES, dealing, SHAPE, dtype, dict.fromkeys(KINDS, OPENED_BITS)
        )
        assert part.nbytes == own.nbytes
        block = RowBlock.of(slice(0, SHAPE[0]), ROLES, dealing)
        if mesh.me == "ada":
            part.add_as_label_party(block, own.copy())
            return part.ask(kind, v, part_of)
        if mesh.me == "hal":
            part.add_as_helper(block, helpers.copy())
            return part.answer(kind, 2, part_of)
        part.add_as_dealer(block)
        return part.deal(kind, 2, part_of)

    got, seen = at_roles(work)
    matrices = [own.tolist(), helpers.tolist(), drawn["y"]]
    if kind == "adjoint":
        matrices = [naive.transpose(matrix) for matrix in matrices]
    result, messages = naive.private_product(
        *matrices, v.tolist(), drawn["x"], drawn["u"], noise.tolist(), bits
    )
    assert got["ada"].tolist() == result
    both = (own + helpers).tolist()
    both = naive.transpose(both) if kind == "adjoint" else both
    exact = np.array(naive.product(both, v.tolist(), bits), dtype)
    assert np.array_equal(np.array(result, dtype) - noise, exact)
    (difference,) = seen["ada"]["hal: difference"]
    difference = difference.T if kind == "adjoint" else difference
    assert difference.tolist() == messages["difference"]
    assert seen["hal"]["ada: masked"][0].tolist() == messages["masked"]
    assert seen["hal"]["tim: dealt"][0].tolist() == messages["dealt"]
    assert seen["ada"]["hal: answer"][0].tolist() == messages["answer"]
    assert "tim" not in seen


@pytest.mark.parametrize(("bits", "tolerance"), [(32, 2e-3), (64, 1e-5)])
@pytest.mark.parametrize("names", [("ada", "hal", "tim"), NAMES, (*NAMES, "zoe")], ids=len)
@pytest.mark.parametrize("phase", ["uint8", "uint16"])
def test_all_steps_together(bits, tolerance, names, phase):
    phases = draw_phases(150, 12, dtype=phase, names=names)
    features = cosines(phases)
    generator = np.random.default_rng(3)
    coefficients = generator.normal(size=(12, 2)) / 12
    residuals = generator.normal(size=(150, 2)) / 150
    rows, columns = np.array([140, 3, 9, 77, 20, 21, 5, 149, 60, 33]), slice(2, 7)

    def program(hidden):
        return [
            hidden.product("forward", coefficients),
            hidden.product("adjoint", residuals),
            hidden.product("forward", coefficients[columns], rows, columns),
            hidden.product("adjoint", residuals[rows], rows, columns),
            hidden.product("forward", coefficients[columns], columns=columns),
        ]

    session = hide(phases, program, bits=bits, roles=Roles("ada", "hal", "tim", names), height=64)
    part = features[rows][:, columns]
    for found, expected in zip(
        session.result,
        [
            features @ coefficients,
            features.T @ residuals,
            part @ coefficients[columns],
            part.T @ residuals[rows],
            features[:, columns] @ coefficients[columns],
        ],
        strict=True,
    ):
        assert found.shape == expected.shape
        # A rounded cosine in 32 bits is off by up to 2^-7 for each direction.
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * 4)
    kept = 150 * 12 * bits // 8
    assert {name: part.nbytes for name, part in session.parts.items()} == {
        name: kept if name in ("ada", "hal", "tim") else 0 for name in names
    }


@pytest.mark.parametrize("columns", [slice(None), slice(2, 7), slice(9, 20)])
def test_products_with_cosines_and_sines(columns):
    phases, generator = draw_phases(150, 12), np.random.default_rng(3)
    features = pairs_of(phases)
    coefficients = generator.normal(size=(24, 2))[columns] / 24
    residuals, rows = generator.normal(size=(150, 2)) / 150, np.arange(3, 150, 2)

    def program(hidden):
        return [
            hidden.product("forward", coefficients, columns=columns),
            hidden.product("adjoint", residuals, columns=columns),
            hidden.product("adjoint", residuals[rows], rows, columns),
        ]

    session = hide(phases, program, pairs=True)
    chosen = features[:, columns]
    for found, expected in zip(
        session.result,
        [chosen @ coefficients, chosen.T @ residuals, chosen[rows].T @ residuals[rows]],
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=4e-5, strict=True)


@pytest.mark.parametrize("names", [("ada", "hal", "tim"), NAMES], ids=len)
@pytest.mark.parametrize("phase", ["uint8", "uint16"])
def test_sines_cost_no_further_message_about_phases(names, phase):
    """All arrays of a run by receiver and step: only the masked matrix itself is twice as wide."""
    phases = draw_phases(150, 12, dtype=phase, names=names)

    def sizes(pairs):
        roles = Roles("ada", "hal", "tim", names)
        session = hide(phases, lambda hidden: None, pairs=pairs, roles=roles)
        assert session.result is None
        return {
            (name, step): sum(values.nbytes for values in arrays)
            for name, steps in session.seen.items()
            for step, arrays in steps.items()
        }

    cosine, pair = sizes(False), sizes(True)
    matrix = ("ada", "hal: difference")
    assert pair.pop(matrix) == 2 * cosine.pop(matrix) == 2 * 150 * 12 * 8
    assert pair == cosine
    assert cosine["hal", "tim: corrections"] == 2 * 150 * 12 * 8


def test_the_helper_counts_sines_with_the_cosines_of_their_directions():
    phases, residuals = draw_phases(60, 5), np.ones((60, 1)) / 60

    def program(columns):
        return lambda hidden: [hidden.product("adjoint", residuals, None, c) for c in columns]

    cosines_only, sines_only = slice(0, 5), slice(5, 10)
    within = [cosines_only, sines_only, slice(0, 10)]
    assert len(hide(phases, program(within), pairs=True, gradients=4).result) == 3
    session = hide(phases, program([*within, sines_only]), pairs=True, gradients=4)
    assert isinstance(session.outcome.errors["hal"], PassesUsedUp)


def test_32_bit_phases_have_no_table():
    phases = draw_phases(4, 4, dtype="uint32")
    with pytest.raises(InputError, match="phase_bits must be 8 or 16, got 32"):
        _ = hide(phases, lambda hidden: None).result


def test_a_dealer_that_runs_ahead_stays_in_step():
    """Products of both kinds, of all rows and of some, of one and of two vectors, in any order."""
    phases = draw_phases(90, 10)
    features = cosines(phases)
    generator = np.random.default_rng(0)
    rows = generator.permutation(90)[:60]
    asked = []
    for step in range(24):
        kind = ["forward", "adjoint"][step % 5 % 2]
        some = rows if step % 4 == 3 else None
        matrix = features if some is None else features[rows]
        size = 10 if kind == "forward" else len(matrix)
        vectors = generator.normal(size=(size, 1 + step % 3 // 2)) / size
        asked.append((kind, vectors, some, matrix if kind == "forward" else matrix.T))
    session = hide(phases, lambda hidden: [hidden.product(*one[:3]) for one in asked])
    for (_, vectors, _, matrix), found in zip(asked, session.result, strict=True):
        np.testing.assert_allclose(found, matrix @ vectors, rtol=0, atol=1e-4)


@every_word
@pytest.mark.parametrize("opened", [OPENED_BITS, 12, 8])
@pytest.mark.parametrize("kind", ["forward", "adjoint"])
def test_a_product_says_so_many_bits_and_no_more(bits, opened, kind):
    """The same product twice differs by H's noise, which is uniform in its range."""
    phases = draw_phases(*((3000, 4) if kind == "forward" else (4, 3000)))
    vectors = np.ones((4, 2)) / 4
    twice = hide(
        phases,
        lambda hidden: [hidden.product(kind, vectors) for _ in range(2)],
        bits=bits,
        **{"value_bits" if kind == "forward" else "gradient_bits": opened},
    )
    first, second = twice.result
    assert not np.array_equal(first, second)
    fixed = FixedPointProducts(Ring(bits))
    _, fractions = fixed.encode(vectors, "coefficients")
    widest = 2.0 ** (bits - opened)
    gaps = (first - second) * 2.0**fractions
    # The difference of two uniform numbers: a triangle between ± the width of the range.
    assert np.abs(gaps).max() < widest
    assert np.abs(gaps).mean() == pytest.approx(widest / 3, rel=0.1)
    assert widest / 2 / 2 ** (bits - 1) == 2.0**-opened


def test_the_helper_knows_how_often_the_row_that_was_opened_most_was_opened():
    some = np.array([1, 2])

    def program(part):
        part.product("forward", np.ones((5, 1)))
        part.product("forward", np.ones((5, 1)), some)

    session = hide(draw_phases(*SHAPE), program)
    session.outcome.unwrap()
    assert session.parts["hal"].opened == 2
    assert session.parts["ada"].opened == 0
