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
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.directions import draw_directions
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.errors import MeshError
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure
from vertikal.secure.keys.prg import derive_key, uniform_elements
from vertikal.solvers.feature_operator import FeatureOperator

Array = npt.NDArray[Any]

STEP = 0.5
"""Step of the difference quotient, in an encoded column, whose deviation is about one."""
LEAST = 1e-3
"""Least relevance, f having a deviation of one: a column is never switched off for good."""

SKETCHES = Disclosure(
    "sketches",
    "random signed sums over rows of the coefficients times sines and cosines, a few numbers per "
    "direction of the search, and no row",
    "each party computes from them how much f changes along its own columns, and along which "
    "combination of them most, up to its sign; that combination can rank its own rows nearly as "
    "well as a linear model of its columns that was told the labels. Of every direction of the "
    "search it learns about how large the label party's coefficient is, up to sign and scale. The "
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
    widths = shard.settings.widths()
    columns = len(shard.columns)
    directions, sketches = np.empty((columns, 0)), None
    for label_party, sent in told.items():
        right = sent.ndim == 2 and sent.dtype == np.float32 and len(sent) == widths[label_party]
        if not (right and sent.shape[1] and np.isfinite(sent).all()):
            raise MeshError(
                f"{party.name}: {label_party} sent sketches of shape {sent.shape}, expected "
                f"finite numbers for {widths[label_party]} directions"
            )
        drawn = draw_directions(shard, label_party).directions * harmonic
        directions = np.hstack((directions, drawn))
        sketches = sent if sketches is None else np.vstack((sketches, sent))
    assert sketches is not None
    return np.maximum(relevance(directions, sketches.astype(np.float64)), LEAST)


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
