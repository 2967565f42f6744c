"""SecureBoost (Cheng et al. 2019) for two classes: training and prediction.

The label party has gradient g and curvature h of the loss at every row, and encrypts them under its
own key. The others add up ciphertexts by column and bin, for the rows of a node, without seeing
one. The label party decrypts these sums and finds the best split of all parties' columns. It tells
its owner, by numbers that mean nothing to itself, which split it is; the owner keeps column and
edge to itself and says which rows go left. So the label party learns sums of g and h by bin of
every column, and every party which rows share a node.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from vertikal.algorithms.secure_boost.histograms import Bins, Split, best_split
from vertikal.algorithms.secure_boost.settings import BoostSettings
from vertikal.errors import MeshError
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure
from vertikal.secure.additive_encryption import AdditiveCipher, AdditiveKey, Fields

Array = npt.NDArray[Any]

FIELDS = Fields(3)  # g + 1, h, and 1: their sums are those of g, of h, and the number of rows

KEY = Disclosure("encryption key", "the label party's public key", "nothing", masked=False)
GRADIENTS = Disclosure(
    "encrypted gradients",
    "gradient and curvature of the loss at each row, encrypted",
    "nothing: only the label party can decrypt them",
    masked=True,
)
NODE = Disclosure(
    "rows of a node",
    "which rows are in a node of a tree",
    "every party learns which rows share a node, and so something of their labels",
    masked=False,
)
HISTOGRAMS = Disclosure(
    "encrypted histograms",
    "sums of gradients by column and bin, encrypted",
    "the label party learns sums of the gradients by bin of every column, without its name",
    masked=True,
)
CHOICE = Disclosure(
    "choice of a split",
    "whose column splits a node, and by which of its bins",
    "its owner learns that this split is the best",
    masked=False,
)
SIDES = Disclosure(
    "sides of a split",
    "which rows of a node are on the left",
    "the label party learns the order of rows in a column at one edge",
    masked=False,
)
ANSWERS = Disclosure(
    "sides of predicted rows",
    "which rows are on the left of each split of this party",
    "the label party learns on which side of its edges each row lies",
    masked=False,
)


@dataclass(frozen=True)
class Node:
    """One node of a tree, at the label party: a leaf's weight, or whose split it is and where."""

    weight: float = 0.0
    owner: str = ""
    split: int = 0  # the number of the split at its owner
    left: int = 0
    right: int = 0


@dataclass
class BoostShard:
    """A party's part: the edges of its own splits; at the label party also the trees."""

    party: str
    columns: tuple[str, ...]
    splits: list[tuple[int, float]] = field(default_factory=list)  # (column, upper edge)
    trees: list[list[Node]] = field(default_factory=list)
    constant: float = 0.0
    learning_rate: float = 0.0


def train(party: Party, settings: BoostSettings) -> BoostShard:
    """Train at this party and return its shard."""
    values = np.asarray(party.table.block(slice(0, party.table.rows)))
    bins = Bins.of(values, settings.bins)
    shard = BoostShard(party.name, party.table.columns, learning_rate=settings.learning_rate)
    if party.labels is None:
        _serve(party, settings, bins, shard)
        return shard
    y = party.labels.targets[:, 0] > 0
    # Weights of one at most, so that g + 1 is not negative.
    weights = party.labels.weights / party.labels.weights.max()
    share = float(weights[y].sum() / weights.sum())
    shard.constant = float(np.log(share / (1 - share)))
    key = AdditiveKey(settings.key_bits)
    others = [name for name in party.parties if name != party.name]
    for name in others:
        party.tell(name, {"key": key.modulus}, KEY)
    f = np.full(len(y), shard.constant)
    counts: Counter[str] = Counter()
    with party.clock.stage("solve", settings.n_trees):
        for _ in range(settings.n_trees):
            p = expit(f)
            g, h = weights * (p - y), weights * p * (1 - p)
            packed = [FIELDS.pack((a + 1, b, 1.0)) for a, b in zip(g, h, strict=True)]
            ciphertexts = key.cipher.encrypt(packed)
            for name in others:
                party.tell(name, ciphertexts, GRADIENTS)
            grower = _Grower(party, settings, bins, shard, key, g, h, counts)
            tree, leaf = grower.grow()
            shard.trees.append(tree)
            f = f + settings.learning_rate * leaf
            party.clock.advance(1)
        for name in others:
            party.tell(name, np.empty((0, key.cipher.bytes), np.uint8), GRADIENTS)
    return shard


class _Grower:
    """One tree, grown level by level at the label party."""

    def __init__(
        self,
        party: Party,
        settings: BoostSettings,
        bins: Bins,
        shard: BoostShard,
        key: AdditiveKey,
        g: Array,
        h: Array,
        counts: Counter[str],
    ) -> None:
        self._party, self._settings, self._bins, self._shard = party, settings, bins, shard
        self._key, self._g, self._h, self._counts = key, g, h, counts
        self._others = [name for name in party.parties if name != party.name]

    def grow(self) -> tuple[list[Node], Array]:
        """Return the tree, and the weight of the leaf that each row comes to."""
        nodes: list[Node] = [Node()]
        leaf = np.zeros(len(self._g))
        open_ = [(0, np.arange(len(self._g)), 0)]
        while open_:
            number, rows, depth = open_.pop(0)
            weight = -self._g[rows].sum() / (self._h[rows].sum() + self._settings.reg_lambda)
            nodes[number] = Node(weight=float(weight))
            leaf[rows] = weight
            if depth == self._settings.depth or len(rows) < 2:
                continue
            owner, split = self._best(rows)
            owner = owner if split.gain > self._settings.min_gain else ""
            left = self._divide(owner, split, rows)
            if not owner:
                continue
            place = self._counts[owner]
            self._counts[owner] += 1
            nodes[number] = Node(0.0, owner, place, len(nodes), len(nodes) + 1)
            open_ += [(len(nodes), rows[left], depth + 1), (len(nodes) + 1, rows[~left], depth + 1)]
            nodes += [Node(), Node()]
        for name in self._others:
            self._party.tell(name, np.empty(0, np.int64), NODE)
        return nodes, leaf

    def _best(self, rows: Array) -> tuple[str, Split]:
        """Find the best split of all parties' columns; the label party's own come first."""
        settings, party = self._settings, self._party
        for name in self._others:
            party.tell(name, rows, NODE)
        found = {party.name: best_split(self._own_histogram(rows), settings.reg_lambda)}
        for name in self._others:
            sums = np.asarray(party.hear(name, HISTOGRAMS))
            if (
                sums.ndim != 2
                or sums.shape[1] != self._key.cipher.bytes
                or len(sums) % settings.bins
            ):
                raise MeshError(f"{party.name}: {name} sent no histograms of {settings.bins} bins")
            numbers = np.array([FIELDS.unpack(one) for one in self._key.decrypt(sums)])
            numbers[:, 0] -= numbers[:, 2]  # Σ(g + 1) − n
            histogram = numbers[:, :2].reshape(-1, settings.bins, 2)
            found[name] = best_split(histogram, settings.reg_lambda)
        owner = max(found, key=lambda name: found[name].gain)
        return owner, found[owner]

    def _own_histogram(self, rows: Array) -> Array:
        bins, columns = self._settings.bins, self._bins.codes.shape[1]
        groups = self._bins.groups(rows, bins)
        sums = [
            np.bincount(groups.ravel(), np.repeat(values[rows], columns), columns * bins)
            for values in (self._g, self._h)
        ]
        return np.stack(sums, axis=1).reshape(columns, bins, 2)

    def _divide(self, owner: str, split: Split, rows: Array) -> Array:
        """Tell whose split it is, and have its owner divide the rows: which go left."""
        party = self._party
        for name in self._others:
            chosen = [split.column, split.bin] if name == owner else [-1, -1]
            party.tell(name, np.array(chosen, np.int64), CHOICE)
        if owner == party.name:
            return _keep(self._bins, self._shard, split.column, split.bin, rows)
        if not owner:
            return np.zeros(len(rows), bool)
        left = np.asarray(party.hear(owner, SIDES))
        if left.dtype != np.uint8 or left.shape != (len(rows),):
            raise MeshError(f"{party.name}: {owner} does not say which rows go left")
        return left.astype(bool)


def _keep(bins: Bins, shard: BoostShard, column: int, place: int, rows: Array) -> Array:
    """Keep a split of this party's own, by column and edge; return which rows go left."""
    edges = bins.edges[column]
    # Beyond the last edge all rows go left; such a split gains nothing and is never the best.
    edge = float(edges[place]) if place < len(edges) else float("inf")
    shard.splits.append((column, edge))
    return np.asarray(bins.codes[rows, column] <= place)


def _serve(party: Party, settings: BoostSettings, bins: Bins, shard: BoostShard) -> None:
    """Add up ciphertexts for the label party at a party without labels, tree after tree."""
    told: Any = party.hear(party.leader, KEY)
    raw = told.get("key") if isinstance(told, dict) else None
    if not isinstance(raw, bytes):
        raise MeshError(f"{party.name}: {party.leader} sent no public key")
    cipher = AdditiveCipher.of(raw, settings.key_bits)
    count, width = party.table.rows, bins.codes.shape[1] * settings.bins
    with party.clock.stage("serve"):
        while len(ciphertexts := np.asarray(party.hear(party.leader, GRADIENTS))):
            if ciphertexts.shape != (count, cipher.bytes):
                raise MeshError(f"{party.name}: {party.leader} sent no gradients of {count} rows")
            while len(rows := np.asarray(party.hear(party.leader, NODE))):
                if rows.dtype != np.int64 or not 0 <= rows.min() <= rows.max() < count:
                    raise MeshError(f"{party.name}: {party.leader} named rows outside the table")
                groups = bins.groups(rows, settings.bins)
                repeated = np.repeat(ciphertexts[rows], groups.shape[1], axis=0)
                party.tell(party.leader, cipher.sums(repeated, groups.ravel(), width), HISTOGRAMS)
                column, place = np.asarray(party.hear(party.leader, CHOICE)).tolist()
                if 0 <= column < bins.codes.shape[1]:
                    left = _keep(bins, shard, column, place, rows)
                    party.tell(party.leader, left.astype(np.uint8), SIDES)


def predict(party: Party, shard: BoostShard) -> Array | None:
    """Predict at this party: log-odds of all rows of ``party.table`` at the leader, else None.

    Every other party says for each of its splits which rows are on its left.
    """
    values = np.asarray(party.table.block(slice(0, party.table.rows)))
    sides = np.array([values[:, column] <= edge for column, edge in shard.splits], bool)
    sides = sides.reshape(len(shard.splits), len(values))
    if not party.leads:
        party.tell(party.leader, np.packbits(sides, axis=1), ANSWERS)
        return None
    found = {party.name: sides}
    for name in party.parties:
        if name != party.name:
            packed = np.asarray(party.hear(name, ANSWERS))
            wanted = sum(node.owner == name for tree in shard.trees for node in tree)
            if packed.dtype != np.uint8 or packed.shape != (wanted, -(-len(values) // 8)):
                raise MeshError(f"{party.name}: {name} does not say on which side rows lie")
            found[name] = np.unpackbits(packed, axis=1, count=len(values)).astype(bool)
    f = np.full(len(values), shard.constant)
    for tree in shard.trees:
        at = np.zeros(len(values), np.int64)
        for _ in range(len(tree)):
            for number in np.unique(at):
                node, here = tree[number], at == number
                if node.owner:
                    left = found[node.owner][node.split]
                    at[here & left], at[here & ~left] = node.left, node.right
            if not any(tree[number].owner for number in np.unique(at)):
                break
        f += shard.learning_rate * np.array([tree[number].weight for number in at])
    return f[:, None]
