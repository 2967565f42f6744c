"""Training and prediction where nobody sees a feature (``disclosure="values"``).

The protocol is in `secure.hidden`: a label party, the helper and the dealer hold masked parts, from
which the label party gets products with the features of its own block and nothing else. Two parties
without a dealer do the same by `secure.two_party`. Here are the operator that solvers multiply by,
the pass over the rows that sets it up, and what the ledger says of each message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.answer_cache import AnswerCache
from vertikal.algorithms.kernel_machine.directions import draw_directions
from vertikal.algorithms.kernel_machine.phases import begun_ahead, direction_block
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.errors import MeshError, PassesUsedUp
from vertikal.kernels.feature_map import FeatureMap
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure
from vertikal.secure.hidden.hidden_features import HiddenBlock, HiddenFeatures
from vertikal.secure.hidden.openings import Limits
from vertikal.secure.two_party.two_party_features import TwoPartyFeatures
from vertikal.side_by_side import in_order, parties_at_work
from vertikal.solvers.feature_operator import ALL, FeatureOperator

Array: TypeAlias = npt.NDArray[Any]
Hidden: TypeAlias = HiddenFeatures | TwoPartyFeatures
"""One party's part in hidden features, by either protocol."""

BLOCK_BYTES = 4 << 20
"""Bytes of the words of one message: few enough that a block's many arrays stay in the cache."""

ON_THE_WAY = 6 * BLOCK_BYTES
"""Bytes of the words of all blocks on their way at a time, at most.

A word comes with two and a half times as many bytes from the dealer to the helper, and a block that
is slow must find room there behind those after it (`mesh.local.CAPACITY`)."""

SPAN_CELLS = 1 << 23
"""Cells that label party, helper and dealer hold at a time while predicting."""

FEWEST_ROWS = 8
"""Fewest rows that a gradient may be summed over."""

PASSES = Disclosure(
    "passes",
    "how many products an earlier run of the job has opened, and how many remain",
    "label party and helper learn how far a run that was broken off had come",
    masked=False,
)

NOTHING = "nothing: uniform to its receiver, whatever the data"


def disclosures_of(
    settings: FdsklSettings, label_party: str, *, training: bool
) -> dict[str, Disclosure]:
    """Describe what each kind of message of the protocol tells its receiver."""
    most = training_limits(settings, label_party, None).at_most()
    gradient = "about a direction"
    if settings.dealerless:
        gradient = "about a combination of directions"
    learns = (
        f"the label party learns Φd of the training rows for the directions d that its solver "
        f"tries, at most {most.values} numbers a row of {most.value_bits} bits each (the "
        "rest is noise of the helper's), which together are the values of f on its way, "
        f"and the gradient summed over the rows, once per pass, at most {most.gradients} numbers "
        f"{gradient} to {most.gradient_bits} bits each; no phase and no feature. A label "
        "party that does not follow the program can put all weight of a gradient on one row: each "
        f"gradient is then that row's features, to {most.gradient_bits} bits each; and each number "
        "about a row can be one of its features"
        if training
        else "the label party learns the predictions of the rows that were asked for, by its own "
        f"coefficients, to {settings.values.prediction_bits} bits; no phase and no feature. A "
        "label party that does not follow the program can ask for another combination of a row's "
        "features in its place, of as many bits"
    )
    if settings.dealerless:
        return _dealerless_disclosures(learns)
    return {
        "keys": Disclosure("dealer's keys", "keys that the dealer drew", NOTHING, True),
        "shares": Disclosure(
            "phase shares", "phases under a mask of the label party's", NOTHING, True
        ),
        "correlation": Disclosure(
            "correlation", "the helper's shares of random cosines and sines", NOTHING, True
        ),
        "opening": Disclosure("opening", "phases under the dealer's mask", NOTHING, True),
        "difference": Disclosure("difference", "the helper's half, masked", NOTHING, True),
        "requests": Disclosure(
            "requests",
            "which product the label party wants next, and of which rows",
            "helper and dealer learn how many products training takes, and which rows a batch has",
            masked=False,
        ),
        "questions": Disclosure("questions", "coefficients or residuals, masked", NOTHING, True),
        "masks": Disclosure("product masks", "the dealer's masks of a product", NOTHING, True),
        "answers": Disclosure("values", "products with the features, masked", learns, True),
    }


def _dealerless_disclosures(learns: str) -> dict[str, Disclosure]:
    """Describe the messages of two parties without a dealer."""
    encrypted = "nothing, as long as learning with errors is hard: the helper has no key"
    return {
        "key": Disclosure(
            "public key", "the label party's public key, and its proof", encrypted, True
        ),
        "cosines": Disclosure(
            "encrypted cosines", "the label party's cosines and sines, encrypted", encrypted, True
        ),
        "hidden": Disclosure(
            "encrypted products",
            "halves of products of these with the helper's cosines and sines; the helper keeps the "
            "others",
            "nothing, as long as learning with errors is hard: these halves look uniform, also to "
            "the label party with its key",
            True,
        ),
        "requests": Disclosure(
            "requests",
            "which product the label party wants next",
            "the helper learns how many products training takes",
            masked=False,
        ),
        "questions": Disclosure(
            "questions", "coefficients or residuals, encrypted", encrypted, True
        ),
        "answers": Disclosure("values", "products with the features, encrypted", learns, True),
    }


def hidden_block(
    settings: FdsklSettings, label_party: str, rows: int, *, training: bool
) -> HiddenBlock:
    """Return the sizes and limits that label party, helper and dealer agree on for these rows."""
    return HiddenBlock(
        rows=rows,
        width=settings.widths()[label_party],
        phase_bits=settings.feature_map.bits,
        product_bits=settings.values.bits,
        limits=training_limits(settings, label_party, rows)
        if training
        else Limits(
            settings.outputs,
            fewest_rows=rows + 1,
            most_gradients=0,
            value_bits=settings.values.prediction_bits,
            gradient_bits=settings.opened_gradient_bits,
        ),
        pairs=settings.pairs,
    )


def training_limits(settings: FdsklSettings, label_party: str, rows: int | None) -> Limits:
    """Return what the helper may open of so many training rows; None: of however many."""
    return Limits(
        settings.passes(label_party),
        FEWEST_ROWS if rows is None else min(FEWEST_ROWS, rows // 4),
        settings.gradients(rows),
        settings.values.value_bits,
        settings.opened_gradient_bits,
    )


def block_height(width: int, bits: int) -> int:
    """Return the rows of one message of words of so many bits."""
    return max(16, 8 * BLOCK_BYTES // (bits * width))


def message_blocks(span: slice, width: int, bits: int) -> Iterator[slice]:
    """Yield the rows in blocks, one for each message of words of so many bits."""
    height = block_height(width, bits)
    for start in range(span.start, span.stop, height):
        yield slice(start, min(start + height, span.stop))


def local_phases(
    party: Party, maps: Sequence[FeatureMap], span: slice, width: int, bits: int
) -> Iterator[tuple[slice, list[Array]]]:
    """Yield each block of rows with this party's phases of it, by these maps.

    A phase has fewer bits than a word, so those of several blocks are computed at a time.
    """
    height = block_height(width, bits)
    tall = height * max(1, BLOCK_BYTES // (height * width))

    def begin(rows: slice) -> list[Callable[[], Array]]:
        numbers = np.arange(rows.start, rows.stop)
        return [party.place.begin_local(one, party.table, numbers) for one in maps]

    spans = [
        slice(start, min(start + tall, span.stop)) for start in range(span.start, span.stop, tall)
    ]
    ahead = party.place.ahead(party.table, tall)
    for rows, begun in begun_ahead(spans, begin, ahead):
        with party.naming("phases"):
            whole = [own() for own in begun]
        for block in message_blocks(rows, width, bits):
            here = slice(block.start - rows.start, block.stop - rows.start)
            yield block, [phases[here] for phases in whole]


class Hiding(Protocol):
    """One party's part in a protocol that hides features."""

    @property
    def at_a_time(self) -> bool: ...

    def add(self, rows: slice, phases: Array) -> None: ...


def hide_rows(
    party: Party, parts: Sequence[tuple[Hiding, FeatureMap]], span: slice, width: int, bits: int
) -> None:
    """Add the phases of these rows to each part, several blocks at a time where there are cores."""

    def hide(block: slice, phases: list[Array]) -> int:
        rows = slice(block.start - span.start, block.stop - span.start)
        for (hidden, _), own in zip(parts, phases, strict=True):
            hidden.add(rows, own)
        return len(phases[0])

    def tasks() -> Iterator[Callable[[], int]]:
        maps = [one for _, one in parts]
        for block, phases in local_phases(party, maps, span, width, bits):
            yield partial(hide, block, phases)

    for rows in in_order(tasks(), _at_a_time(parts, width, bits)):
        party.clock.advance(rows)


def _at_a_time(parts: Sequence[tuple[Hiding, FeatureMap]], width: int, bits: int) -> int:
    """Return how many blocks this party may have on their way."""
    if not all(hidden.at_a_time for hidden, _ in parts):
        return 1
    block = block_height(width, bits) * width * bits // 8
    return max(1, min(parties_at_work.cores_of_each, ON_THE_WAY // (block * len(parts))))


class HiddenOperator(FeatureOperator):
    """Φ of one label party's block, whose entries nobody holds.

    Φ = √(2/D)·cos θ, or √(1/D)·(cos θ, sin θ), where D are the directions of all label parties.

    It offers no Gram matrix: that would open another D² numbers about the rows. The exact solver
    goes without a preconditioner, and remembers more pairs instead. Products that an earlier run of
    the job has opened are taken from ``answers``.
    """

    def __init__(self, hidden: Hidden, directions: int, answers: AnswerCache | None = None) -> None:
        self.rows, self.width = hidden.agreed.rows, hidden.agreed.features
        self._hidden = hidden
        self._norm = math.sqrt((1 if hidden.agreed.pairs else 2) / directions)
        self._answers = answers

    def forward(
        self, coefficients: Array, rows: Array | None = None, columns: slice = ALL
    ) -> Array:
        return self._product("forward", coefficients * self._norm, rows, columns)

    def adjoint(self, residuals: Array, rows: Array | None = None, columns: slice = ALL) -> Array:
        return self._product("adjoint", residuals, rows, columns) * self._norm

    def _product(self, kind: str, vectors: Array, rows: Array | None, columns: slice) -> Array:
        if rows is None:
            return self._asked(kind, vectors, None, columns)
        # A batch may draw a row twice; it is asked for once, or its noise would be drawn twice.
        distinct, places = np.unique(rows, return_inverse=True)
        if kind == "forward":
            return self._asked(kind, vectors, distinct, columns)[places]
        summed = np.zeros((len(distinct), vectors.shape[1]))
        np.add.at(summed, places, vectors)
        return self._asked(kind, summed, distinct, columns)

    def _asked(self, kind: str, vectors: Array, rows: Array | None, columns: slice) -> Array:
        if self._answers is None:
            return self._hidden.product(kind, vectors, rows, columns)
        return self._answers.product(self._hidden.product, kind, vectors, rows, columns)


class HiddenPass:
    """Part of this party in hiding the features of one model; same interface as `PhasePass`."""

    def __init__(self, party: Party, shard: Shard, *, training: bool = True) -> None:
        self._party = party
        self._settings = shard.settings
        self._training = training
        self._maps = {
            label_party: direction_block(shard, draw_directions(shard, label_party)).feature_map
            for label_party in shard.settings.widths()
        }
        self._hidden: Mapping[str, Hidden] = {}

    def gather(self, rows: int, kept: int) -> HiddenOperator | None:
        """Take part in the one pass over the training rows; return Φ at a label party."""
        self.add(slice(0, rows))
        own, checkpoints = self._hidden.get(self._party.name), self._party.checkpoints
        answers = AnswerCache(checkpoints) if own is not None and checkpoints is not None else None
        most = self._passes_left(0 if answers is None else answers.opened)
        if own is None:
            return None
        operator = HiddenOperator(own, self._settings.n_components, answers)
        operator.most_forward = most
        return operator

    def _passes_left(self, opened: int) -> int | None:
        """Return the forward products that a label party may count on, known answers included.

        The helper may have counted an answer that never reached the label party's disk. It cannot
        be opened again beyond what was agreed, so all label parties do with one less. Elsewhere,
        and without checkpoints, there is no such limit: None.
        """
        party, settings = self._party, self._settings
        helper = settings.helper()
        if party.checkpoints is None or settings.solver != "exact":
            return None
        if party.name == helper:
            left = []
            for label_party, hidden in self._hidden.items():
                known = _number(party, label_party)
                left.append(settings.passes(label_party) - max(0, hidden.opened - known))
            for label_party in self._hidden:
                party.tell(label_party, np.array([max(0, min(left))], np.int64), PASSES)
        elif party.name in self._hidden:
            party.tell(helper, np.array([opened], np.int64), PASSES)
            most = _number(party, helper)
            if most < settings.outputs:
                raise PassesUsedUp(
                    f"{party.name}: broken-off runs of this job have used up the "
                    f"{settings.passes(party.name)} passes that were agreed (max_passes); submit "
                    "it again"
                )
            return most
        return None

    def add(self, span: slice) -> None:
        """Hide the features of these rows, under new masks."""
        party = self._party
        self._hidden = {
            label_party: self._begin(label_party, span.stop - span.start)
            for label_party in self._maps
        }
        widest = max(self._settings.widths().values())
        parts = list(zip(self._hidden.values(), self._maps.values(), strict=True))
        hide_rows(party, parts, span, widest, self._settings.values.bits)

    def _begin(self, label_party: str, rows: int) -> Hidden:
        settings = self._settings
        agreed = hidden_block(settings, label_party, rows, training=self._training)
        disclosures = disclosures_of(settings, label_party, training=self._training)
        if settings.dealerless:
            return self._party.two_party_features(
                label_party, settings.helper(), agreed, disclosures, lasting=self._training
            )
        return self._party.hidden_features(
            label_party, *settings.assistants(), agreed, disclosures, lasting=self._training
        )

    @property
    def operator(self) -> HiddenOperator:
        """Operator Φ of the rows added last, at the label party."""
        return HiddenOperator(self._hidden[self._party.name], self._settings.n_components)

    def serve(self) -> None:
        """Take part in products, as helper or dealer, until the label parties want no more."""
        if not self._settings.dealerless and self._party.name not in self._settings.assistants():
            return
        if len(self._hidden) == 1:
            for hidden in self._hidden.values():
                hidden.serve()
            return
        # Each label party asks at its own pace, so each has a thread to itself.
        pool = ThreadPoolExecutor(len(self._hidden))
        tasks = [pool.submit(hidden.serve) for hidden in self._hidden.values()]
        done, _ = wait(tasks, return_when=FIRST_EXCEPTION)
        # Not waited for: the other threads stop waiting only once this party has failed.
        pool.shutdown(wait=False)
        for task in done:
            task.result()

    def finish(self) -> None:
        """Tell helper and dealer, as a label party, that no more products are wanted."""
        self._hidden[self._party.name].finish()


def _number(party: Party, name: str) -> int:
    """Receive a number of passes from this party."""
    told = np.asarray(party.hear(name, PASSES))
    if told.dtype != np.int64 or told.shape != (1,) or told[0] < 0:
        raise MeshError(f"{party.name}: {name} sent {told!r}, expected a number of passes")
    return int(told[0])


def hidden_predictions(party: Party, shard: Shard) -> Iterator[tuple[slice, Array]]:
    """Yield (rows, partial predictions) in spans at label parties; the others take part."""
    phases = HiddenPass(party, shard, training=False)
    height = max(16, SPAN_CELLS // max(shard.settings.features().values()))
    for start in range(0, party.table.rows, height):
        span = slice(start, min(start + height, party.table.rows))
        phases.add(span)
        if party.has_labels and shard.coefficients is not None:
            partial = phases.operator.forward(shard.coefficients)
            phases.finish()
            yield span, partial
        else:
            phases.serve()
