"""Relevance: how much f changes along each column, from sketches that name no row.

With features cos θ and sin θ of phases θ_ik = Σ_j x_ij Ω_jk + b_k,

    f(x_i) = Σ_k u_k cos θ_ik + w_k sin θ_ik
    ∂f/∂x_ij = Σ_k Ω_jk (w_k cos θ_ik − u_k sin θ_ik).

The relevance of column j is the root of the mean over the rows of (∂f/∂x_ij)². Phases and
coefficients are at the label party, Ω_j at the owner of column j. So the label party draws random
signs z_i and tells the *sketch*, one number per direction,

    v_k = n^(−1/2) Σ_i z_i (w_k cos θ_ik − u_k sin θ_ik),

and the owner computes (Σ_k Ω_jk v_k)². Since E[z_i z_i'] is 1 for i = i' and 0 otherwise, its mean
over the signs is the mean of the squared derivatives; the owner takes the mean over R sketches.
Several outputs are joined by one more random sign each, and squares add up in the same way.

Directions of the Laplace kernel are Cauchy numbers, whose squares have no mean: single directions
would decide. A derivative is therefore replaced by the difference quotient over a step of `STEP`
in the encoded column, in which sin(Ω·STEP)/STEP stands for Ω.

The tuned kernel machine learns factors of columns by it. Of any model with open features it tells
each owner how much its own columns matter (`column_relevance`), over rows that are predicted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.algorithms.kernel_machine.directions import draw_directions
from vertikal.algorithms.kernel_machine.phases import PhasePass
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.compute.open_operator import OpenOperator
from vertikal.errors import MeshError
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure
from vertikal.secure.keys.prg import derive_key, uniform_elements
from vertikal.solvers.feature_operator import FeatureOperator

Array = npt.NDArray[Any]

STEP = 0.5
"""Step of the difference quotient, in an encoded column, whose deviation is about one."""
COUNT = 32
"""Sketches by which owners learn of their columns."""
LEAST = 1e-3
"""Least relevance, f having a deviation of one: a column is never switched off for good."""

SKETCHES = Disclosure(
    "sketches",
    "random signed sums over rows of the coefficients times sines and cosines, a few numbers per "
    "direction, and no row",
    "each party computes from them how much f changes along its own columns, and along which "
    "combination of them most, up to its sign; that combination can rank its own rows nearly as "
    "well as a linear model of its columns that was told the labels. Of every direction "
    "it learns about how large the label party's coefficient is, up to sign and scale. The "
    "signs are secret: no label or prediction of a single row follows, and nothing of others' "
    "columns",
    masked=False,
)
SIGNS = Disclosure(
    "signs",
    "the key of the random signs",
    "label parties draw the same signs, nothing about the data",
    masked=False,
)


def random_signs(key: bytes, *shape: int) -> Array:
    """Draw secret signs −1 and +1 of this shape."""
    bits = uniform_elements(key, shape, np.uint8) & np.uint8(1)
    return bits.astype(np.float64) * 2 - 1


def sketch(
    operator: FeatureOperator, coefficients: Array, shares: Array, key: bytes, count: int
) -> Array:
    """Return ``count`` sketches (directions, count) of f = Φ·coefficients.

    ``operator`` has the cosines of all directions first, then their sines; ``shares`` (rows,) are
    the rows' weights in the mean, 1/n each if they are equal.
    """
    rows, outputs = operator.rows, coefficients.shape[1]
    signs = random_signs(derive_key(key, "rows"), rows, count) * np.sqrt(shares)[:, None]
    joined = coefficients @ random_signs(derive_key(key, "outputs"), outputs, count)
    sums = operator.adjoint(signs)  # (features, count)
    half = operator.width // 2
    return np.asarray(joined[half:] * sums[:half] - joined[:half] * sums[half:])


def relevance(directions: Array, sketches: Array) -> Array:
    """Return the relevance of the columns whose coordinates ``directions`` (columns, D) has."""
    slopes = np.sin(directions * STEP) / STEP
    return np.asarray(np.sqrt(np.mean(np.square(slopes @ sketches), axis=1)))


def tell_sketches(party: Party, mine: Array | None) -> dict[str, Array]:
    """Send this label party's sketches to everybody; return those of all label parties."""
    told = {}
    for label_party in party.label_parties:
        group = (label_party, *(name for name in party.parties if name != label_party))
        own = None if mine is None or party.name != label_party else mine.astype(np.float32)
        told[label_party] = np.asarray(party.broadcast(own, group, SKETCHES))
    return told


def learn_relevance(party: Party, shard: Shard, told: dict[str, Array], harmonic: int) -> Array:
    """Return the relevance of this party's own columns, from the sketches of all label parties.

    ``shard`` draws the directions of the pass; f was fitted on the features of ``harmonic`` times
    its phases.
    """
    units = np.full(shard.width, float(harmonic))
    return np.maximum(_slopes(party, shard, told, units), LEAST)


def _slopes(party: Party, shard: Shard, told: dict[str, Array], units: Array) -> Array:
    """Return the change of f along each encoded column, by a step in ``units`` (columns,)."""
    widths = shard.settings.widths()
    directions, sketches = np.empty((shard.width, 0)), None
    for label_party, sent in told.items():
        right = sent.ndim == 2 and sent.dtype == np.float32 and len(sent) == widths[label_party]
        if not (right and sent.shape[1] and np.isfinite(sent).all()):
            raise MeshError(
                f"{party.name}: {label_party} sent sketches of shape {sent.shape}, expected "
                f"finite numbers for {widths[label_party]} directions"
            )
        drawn = draw_directions(shard, label_party).directions * units[:, None]
        directions = np.hstack((directions, drawn))
        sketches = sent if sketches is None else np.vstack((sketches, sent))
    assert sketches is not None
    return relevance(directions, sketches.astype(np.float64))


def column_relevance(party: Party, shard: Shard) -> dict[str, float]:
    """Compute how much f changes along this party's own columns, over the rows of its table.

    A column counts by its deviation; the most relevant one of the party has 1. All parties take
    part, by one pass of phases as for a prediction; only the owner learns its numbers.
    """
    rows = party.table.rows
    with party.encoded(shard.encoding), party.clock.stage("relevance", rows):
        operator = PhasePass(party, shard).gather(rows, rows)
        sketches = None
        if operator is not None and shard.coefficients is not None:
            sketches = _sketches_of(operator, shard, shared_key(party, "columns"))
        told = tell_sketches(party, sketches)
        found = _slopes(party, shard, told, _deviations(party))
    parents = range(len(shard.columns)) if shard.encoding is None else shard.encoding.parents
    squares = np.zeros(len(shard.columns))
    np.add.at(squares, list(parents), np.square(found))
    top = np.sqrt(squares.max(initial=0.0))
    values = np.sqrt(squares) / top if top > 0 else squares
    return dict(zip(shard.columns, values.tolist(), strict=True))


def _sketches_of(operator: OpenOperator, shard: Shard, key: bytes) -> Array:
    """Sketch f at a label party that holds the phases, of cosines alone or of sines too."""
    rows, coefficients = operator.rows, shard.coefficients
    assert coefficients is not None
    if shard.settings.pairs:
        return sketch(operator, coefficients, np.full(rows, 1 / rows), key, COUNT)
    # cos(θ − π/2) = sin θ, by phases a quarter of a turn back.
    quarter = 3 << (shard.settings.feature_map.bits - 2)
    phases = operator.cached
    sines = operator.with_elements(phases + phases.dtype.type(quarter))
    signs = random_signs(derive_key(key, "rows"), rows, COUNT) / np.sqrt(rows)
    outputs = random_signs(derive_key(key, "outputs"), coefficients.shape[1], COUNT)
    return -(coefficients @ outputs) * sines.adjoint(signs)


def _deviations(party: Party) -> Array:
    """Return the deviation of each of the party's columns, as encoded."""
    block = party.table.block(slice(None))
    cells = block.toarray() if sparse.issparse(block) else block
    return np.asarray(cells.std(axis=0))


def shared_key(party: Party, purpose: str) -> bytes:
    """Return the key of the signs at a label party: the leader's secret, told to the others."""
    mine = party.secret("signs", purpose) if party.leads else None
    if len(party.label_parties) == 1:
        assert mine is not None
        return mine
    payload = None if mine is None else np.frombuffer(mine, np.uint8)
    told = np.asarray(party.broadcast(payload, party.label_parties, SIGNS))
    if told.dtype != np.uint8 or told.shape != (32,):
        raise MeshError(f"{party.name}: {party.leader} sent {told!r}, expected a key of 32 bytes")
    return told.tobytes()
