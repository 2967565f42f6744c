"""FDSKL and AVFKAM as the rest of the tree sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.algorithms.algorithm import (
    Algorithm,
    Cost,
    Dealer,
    Exposure,
    Fit,
    Fitted,
    OpenedValues,
    Route,
)
from vertikal.algorithms.kernel_machine import avfkam, fdskl
from vertikal.algorithms.kernel_machine.bandwidth import BANDWIDTH, DISTANCES, MEAN
from vertikal.algorithms.kernel_machine.directions import draw_directions
from vertikal.algorithms.kernel_machine.label_sums import PARTIAL, PRODUCTS
from vertikal.algorithms.kernel_machine.labels.comparison import COMPARED, COUNTED
from vertikal.algorithms.kernel_machine.labels.parts import KNOWN, SLOPES, TOTALS
from vertikal.algorithms.kernel_machine.phases import REQUESTS, phases_of
from vertikal.algorithms.kernel_machine.relevance import SKETCHES, column_relevance
from vertikal.algorithms.kernel_machine.sealed import DISCLOSURES as SEALED
from vertikal.algorithms.kernel_machine.sealed import (
    WORD_BITS,
    minimise,
    sealed_steps_of,
    training_block,
)
from vertikal.algorithms.kernel_machine.sealed_residuals import (
    PairwiseSquareResiduals,
    ResidualMap,
    SquareResiduals,
)
from vertikal.algorithms.kernel_machine.settings import (
    AvfkamSettings,
    FdsklSettings,
    Fourier,
    Landmarks,
    Stochastic,
    Values,
)
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.algorithms.kernel_machine.stochastic.asynchronous import STEPS
from vertikal.algorithms.kernel_machine.stochastic.round_robin import ROWS
from vertikal.algorithms.kernel_machine.values import (
    PASSES,
    disclosures_of,
    hidden_block,
    message_blocks,
    training_limits,
)
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.kernels.bandwidth import PAIRS
from vertikal.kernels.spectral import kernel_named
from vertikal.losses.pointwise import LOSSES
from vertikal.party.party import AGREEMENT, RESUMED, Party
from vertikal.privacy.budget import BudgetFile
from vertikal.privacy.ledger import Disclosure
from vertikal.ring.integers import Ring
from vertikal.ring.wide_numbers import WIDE_BYTES
from vertikal.secure.dealing_ahead import DealingAhead
from vertikal.secure.hidden.openings import OpenedBits
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.two_party.sizes import TwoPartySizes

Array = npt.NDArray[Any]
SettingsT = TypeVar("SettingsT", bound=FdsklSettings)

_EXACT_PASSES = 40
"""Passes over the rows that an estimate of cost counts for the exact solver."""
_STEPS = 32
"""Steps that it counts for the stochastic solver where the settings leave them open."""
OF_A_FIT = ("alpha", "loss", "tol", "max_iter", "validation", "threshold")
"""Settings that do not change the features."""
_FEWEST_DIRECTIONS = 64
"""Directions of a try of a search at least, if the settings have as many."""
LINEAR_DIRECTIONS = 256
"""Directions of a linear machine to compare with at most: enough for as many columns."""


def _narrowed(settings: SettingsT, width: int) -> SettingsT:
    """Return settings of fewer directions, of which hidden ones open fewer values."""
    width = max(width, len(settings.label_parties))
    narrow = msgspec.structs.replace(settings, n_components=width)
    if isinstance(settings.disclosure, Values) and settings.disclosure.max_passes is not None:
        most = max(1, min(narrow.widths().values()) // 4)
        fewer = min(settings.disclosure.max_passes, most)
        level = msgspec.structs.replace(settings.disclosure, max_passes=fewer)
        narrow = msgspec.structs.replace(narrow, disclosure=level)
    return narrow


def _opened(settings: FdsklSettings) -> tuple[OpenedValues, ...]:
    """List the numbers about a row that each label party gets to see in training."""
    if settings.seals:
        return ()
    opened = []
    for label_party, width in settings.widths().items():
        if settings.hides:
            at_most = training_limits(settings, label_party, None).at_most()
            # As many values as it owns directions would tell it the features.
            opened.append(OpenedValues(label_party, at_most, safe_passes=max(1, width // 4)))
        else:
            pairs = PAIRS if settings.typical_distance == "median" else 0
            distances = pairs if label_party == settings.label_parties[0] else 0
            phases = OpenedBits(width, settings.feature_map.bits)
            opened.append(OpenedValues(label_party, phases, distances=distances))
    return tuple(opened)


def ways_of(settings: FdsklSettings) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Tell senders and receivers of a kind of message, by its name; others may go everywhere."""
    everybody, labels, leader = settings.parties, settings.label_parties, settings.label_parties[:1]
    ways = {
        **dict.fromkeys((DISTANCES.name, MEAN.name), (everybody, leader)),
        BANDWIDTH.name: (leader, everybody),
        phases_of(settings).name: (everybody, labels),
        REQUESTS.name: (labels, everybody),
        SKETCHES.name: (labels, everybody),
        **dict.fromkeys(
            (one.name for one in (PARTIAL, PRODUCTS, COMPARED, COUNTED, STEPS, ROWS)),
            (labels, labels),
        ),
    }
    if not settings.hides or settings.dealerless:
        return ways
    helper, dealer = ((name,) for name in settings.assistants())
    both = (*labels, *helper)
    hidden = SEALED if settings.seals else disclosures_of(settings, labels[0], training=True)
    roles = {
        "keys": (dealer, both),
        "shares": (everybody, helper),
        "correlation": (dealer, helper),
        "masks": (dealer, helper),
        "difference": (both, both) if settings.seals else (helper, labels),
        "questions": (labels, helper),
        "answers": (helper, labels),
        "requests": (labels, (*helper, *dealer)),
        "factors": (labels, helper),
        "predictions": (helper, labels),
    }
    ways |= {one.name: roles.get(key, (both, both)) for key, one in hidden.items()}
    return ways | {PASSES.name: (both, both)}


class KernelMachine(Algorithm[SettingsT, Shard]):
    """Common part of FDSKL and AVFKAM: features, levels of disclosure, shards, cost."""

    shard_type = Shard
    sealed_residuals: ClassVar[type[ResidualMap]]
    """Residuals of a sealed fit, which set what a dealer has to prepare."""

    def predict(self, party: Party, shard: Shard) -> Array | None:
        return fdskl.predict(party, shard)

    def exposure(self, settings: SettingsT) -> Exposure:
        return Exposure(
            level=settings.level,
            components=settings.n_components,
            opened=_opened(settings),
            prediction_bits=settings.outputs * settings.hidden.prediction_bits
            if settings.hides
            else 0,
            experiments=("shared directions are for experiments only",)
            if settings.shares_directions
            else (),
        )

    def messages(self, settings: SettingsT) -> list[Disclosure]:
        found = [AGREEMENT]
        if isinstance(settings.bandwidth, str):
            found += [DISTANCES if settings.typical_distance == "median" else MEAN, BANDWIDTH]
        if settings.seals:
            found += SEALED.values()
        elif settings.hides:
            hidden = disclosures_of(settings, settings.label_parties[0], training=True)
            found += [*hidden.values(), PASSES]
        else:
            found += [phases_of(settings), RESUMED]
            if settings.cache_size is not None:
                found.append(REQUESTS)
        if len(settings.label_parties) > 1:
            found += [PARTIAL, PRODUCTS, COMPARED, COUNTED]
        if settings.label_parts:
            found += [KNOWN, TOTALS, *([SLOPES] if settings.solver == "exact" else [])]
        if settings.asynchronous:
            found += [STEPS, *([ROWS] if settings.label_parts else [])]
        elif settings.solver != "exact" and len(settings.label_parties) > 1:
            found.append(ROWS)
        return found

    def routes(self, settings: SettingsT) -> list[Route]:
        ways = ways_of(settings)
        everywhere = (settings.parties, settings.parties)
        return [Route(one, *ways.get(one.name, everywhere)) for one in self.messages(settings)]

    def alone(self, settings: SettingsT, party: str) -> SettingsT:
        return msgspec.structs.replace(
            settings,
            parties=(party,),
            label_parties=(party,),
            disclosure="open",
            label_parts=False,
        )

    def relevance_shows(self, settings: SettingsT) -> str | None:
        single = isinstance(settings.feature_map, Fourier) and settings.feature_map.harmonics == (
            1,
        )
        return SKETCHES.learns if single and not settings.hides else None

    def column_relevance(self, party: Party, shard: Shard) -> dict[str, float]:
        return column_relevance(party, shard)

    def shares_features(self, first: SettingsT, second: SettingsT) -> bool:
        """Return True if both have the same open features, all kept, and the exact solver.

        Label parties must all hold all labels, since a fit takes those of its rows. Hidden features
        are not shared: each further fit would open values of the same features.
        """
        like = msgspec.structs.replace(
            second, **{name: getattr(first, name) for name in OF_A_FIT if hasattr(first, name)}
        )
        return (
            not first.hides
            and first.solver == "exact"
            and first.cache_size is None
            and not first.label_parts
            and (like == first)
        )

    def smaller(self, settings: SettingsT, share: float) -> SettingsT:
        wanted = max(_FEWEST_DIRECTIONS, round(share * settings.n_components))
        return _narrowed(settings, min(settings.n_components, wanted))

    def linear(self, settings: SettingsT) -> tuple[Algorithm[Any, Any], Any] | None:
        if kernel_named(settings.kernel).odd:
            return None
        bits = settings.feature_map.bits if isinstance(settings.feature_map, Fourier) else 8
        straight = msgspec.structs.replace(
            settings,
            kernel="linear",
            bandwidth="mean",
            scale="standard",
            feature_map=Fourier(bits=bits),
        )
        return self, _narrowed(straight, min(settings.n_components, LINEAR_DIRECTIONS))

    def facts_for_owner(self, shard: Shard) -> dict[str, Any]:
        """Say the bandwidth, and at a label party the penalty and how the solver went."""
        facts: dict[str, Any] = {"bandwidth": shard.bandwidth}
        if shard.coefficients is not None:
            training = shard.training
            facts |= {"penalty": training.penalty, "iterations": training.iterations}
        return facts

    def prediction_shows(self, settings: SettingsT) -> str:
        if settings.hides:
            each = f" for each of {settings.outputs} classes" if settings.outputs > 1 else ""
            return (
                f"{settings.label_parties[0]} gets f of these rows{each} to "
                f"{settings.hidden.prediction_bits} bits, and nothing else of them; if it "
                "deviates, another combination of a row's features of as many bits"
            )
        names = " and ".join(settings.label_parties)
        get = "gets" if len(settings.label_parties) == 1 else "get"
        return f"{names} {get} the summed phases of these rows, as above"

    def cost(self, settings: SettingsT, rows: int, columns: int) -> Cost:
        cells = rows * settings.n_components
        label_parties = settings.label_parties
        passes = _EXACT_PASSES
        if isinstance(settings.solver, Stochastic):
            passes = 2 * (settings.solver.n_steps or _STEPS)
        phase_bits = settings.feature_map.bits
        sent = {}
        for name in settings.parties:
            own = settings.widths().get(name, 0) * rows
            sent[name] = (cells - own) * phase_bits // 8
        memory = {name: rows * (columns + 16) * 8 for name in settings.parties}
        for name in label_parties:
            memory[name] += settings.widths()[name] * rows * phase_bits // 8
        if settings.dealerless:
            return self._dealerless_cost(settings, rows, columns)
        if settings.hides:
            helper, dealer = settings.assistants()
            word = settings.hidden.bits // 8
            for name in label_parties:
                sent[name] += cells // len(label_parties)
            features = settings.per_phase * settings.n_components
            # One correlation of a cosine and a sine serves both; what is kept grows with features.
            sent[helper] += cells + rows * features * word
            sent[dealer] += cells * 2 * (WIDE_BYTES if word < 8 else word)
            for name in (*label_parties, helper, dealer):
                memory[name] += rows * features * word
            passes = min(passes, settings.iterations(rows) * 2)
            for name in (*label_parties, helper, dealer):
                sent[name] += passes * (rows + features) * word
        rounds = 4 + (2 * passes if settings.hides or len(label_parties) > 1 else 0)
        work = float(cells) * (columns + passes * settings.per_phase)
        return Cost(sent, rounds, memory, work)

    def _dealerless_cost(self, settings: SettingsT, rows: int, columns: int) -> Cost:
        """Price of hidden features of two parties, which whole polynomials of directions make."""
        ((label_party, width),) = settings.widths().items()
        helper = settings.helper()
        sizes = TwoPartySizes(rows, width, pairs=settings.pairs)
        passes = min(_EXACT_PASSES, settings.iterations(rows) * 2)
        both = settings.outputs * passes / 2
        opened = hidden_block(settings, label_party, rows, training=True).opened_bits
        memory = {name: rows * (columns + 16) * 8 for name in settings.parties}
        memory[label_party] += sizes.kept_by_label_party
        memory[helper] += sizes.kept_by_helper
        return Cost(
            {
                label_party: int(sizes.keys + sizes.encrypted + both * sizes.asked(opened)),
                helper: int(sizes.hidden + both * sizes.answered(opened)),
            },
            4 + 2 * passes,
            memory,
            float(rows) * width * columns + sizes.multiplications(settings.outputs * passes),
        )

    def known_answers(self, shard: Shard, rows: Array) -> Array:
        """Project rows on the party's own directions, or measure them from its own landmarks."""
        if shard.encoding is not None:
            rows = shard.encoding.apply(Table(shard.party, shard.columns, rows)).block(slice(None))
        centre, factor = shard.scaling.arrays()
        if isinstance(shard.settings.feature_map, Landmarks):
            scaled = (rows - centre) * factor
            return np.hstack(
                [
                    np.square(scaled[:, None, :] - points).sum(axis=2)
                    for points in shard.landmarks.values()
                ]
            )
        parts = []
        for label_party in shard.settings.widths():
            drawn = draw_directions(shard, label_party)
            parts.append((rows - drawn.centre) @ drawn.directions)
            parts.append(np.tile(drawn.offsets.astype(np.float64), (len(rows), 1)))
        return np.hstack(parts)

    def to_store(self, shard: Shard) -> Shard:
        moments = [replace(moment, seconds=0.0) for moment in shard.training.moments]
        return replace(shard, training=replace(shard.training, moments=moments))

    def threshold(self, shard: Shard) -> float:
        return shard.threshold

    def labels_in_parts(self, settings: SettingsT) -> bool:
        return settings.label_parts

    def can_spare_label_parties(self, settings: SettingsT) -> bool:
        return settings.asynchronous and settings.stochastic.allow_missing

    def dealer(self, settings: SettingsT) -> Dealer | None:
        if not settings.hides or settings.dealerless:
            return None
        helper, dealer = settings.assistants()
        return Dealer(dealer, (*settings.label_parties, helper))

    def prepared_roles(self, settings: SettingsT) -> Roles:
        if not settings.hides or settings.dealerless:
            raise InputError.of("disclosure", "'values' or 'sealed' for a dealer", settings.level)
        if len(settings.label_parties) > 1:
            raise InputError.of(
                "label_parties", "one where a dealer prepares", list(settings.label_parties)
            )
        helper, dealer = settings.assistants()
        return Roles(settings.label_parties[0], helper, dealer, settings.parties)

    def prepare(self, dealing: DealingAhead, settings: SettingsT, rows: int) -> None:
        """Do all of the dealer's work that does not wait for the others.

        Sealed, that is everything it will send. With ``disclosure="values"`` it is the correlation
        of the features, which is nearly everything: products are dealt for as they are asked for.
        """
        (label_party,) = settings.label_parties
        width, dtype = settings.n_components, Ring(settings.feature_map.bits).dtype
        if not settings.seals:
            hidden = dealing.hidden(hidden_block(settings, label_party, rows, training=True))
            for block in message_blocks(slice(0, rows), width, settings.values.bits):
                hidden.add(block, np.zeros((block.stop - block.start, width), dtype))
            return
        residual_map = self.sealed_residuals(rows, settings.outputs, None)
        steps = sealed_steps_of(settings, rows, residual_map)
        sealed = dealing.sealed(training_block(settings, rows, residual_map, steps))
        for block in message_blocks(slice(0, rows), width, WORD_BITS):
            sealed.add(block, np.zeros((block.stop - block.start, width), dtype))
        residual_map.begin(sealed, steps)
        minimise(sealed, residual_map, steps)


class Fdskl(KernelMachine[FdsklSettings]):
    """Doubly stochastic kernel learning (Gu et al. 2020), by the exact or a stochastic solver."""

    name: ClassVar[str] = "fdskl"
    description: ClassVar[str] = "a kernel machine by random features (FDSKL)"
    settings_type = FdsklSettings
    sealed_residuals = SquareResiduals

    def train(
        self,
        party: Party,
        settings: FdsklSettings,
        budget: BudgetFile | None = None,
        job: str = "",
    ) -> Shard:
        return fdskl.train(party, settings)

    def fit_several(self, party: Party, fits: Sequence[Fit]) -> list[Fitted]:
        return fdskl.train_several(party, fits)

    def predicts_log_odds(self, settings: FdsklSettings) -> bool:
        return settings.loss == "logistic" and not settings.regression

    def probabilities(self, settings: FdsklSettings, f: Array) -> Array | None:
        return None if settings.regression else LOSSES[settings.loss].probability(f)


class Avfkam(KernelMachine[AvfkamSettings]):
    """AUC maximisation with pairwise losses (Zhang et al. 2024); it predicts as FDSKL does."""

    name: ClassVar[str] = "avfkam"
    description: ClassVar[str] = "a kernel machine for the AUC, on pairs of rows (AVFKAM)"
    settings_type = AvfkamSettings
    sealed_residuals = PairwiseSquareResiduals

    def train(
        self,
        party: Party,
        settings: AvfkamSettings,
        budget: BudgetFile | None = None,
        job: str = "",
    ) -> Shard:
        return avfkam.train(party, settings)

    def fit_several(self, party: Party, fits: Sequence[Fit]) -> list[Fitted]:
        return avfkam.train_several(party, fits)

    def predicts_log_odds(self, settings: AvfkamSettings) -> bool:
        # f is calibrated on rows held out, of which sealed training never sees a prediction.
        return not settings.seals


FDSKL = Fdskl()
AVFKAM = Avfkam()
