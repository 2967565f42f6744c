"""The tuned kernel machine as the rest of the tree sees it."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.algorithms.algorithm import (
    Algorithm,
    Cost,
    Dealer,
    Exposure,
    OpenedValues,
    Route,
)
from vertikal.algorithms.kernel_machine.algorithm import FDSKL, LINEAR_DIRECTIONS, ways_of
from vertikal.algorithms.kernel_machine.relevance import SIGNS, SKETCHES
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.tuned import training
from vertikal.algorithms.tuned.search import CHOICE, TRIAL
from vertikal.algorithms.tuned.settings import SMALL, KernelSettings
from vertikal.algorithms.tuned.shard import TunedShard
from vertikal.algorithms.tuned.training import GROWTH
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.party.party import Party
from vertikal.privacy.budget import BudgetFile
from vertikal.privacy.ledger import Disclosure
from vertikal.secure.hidden.openings import OpenedBits
from vertikal.secure.hidden.roles import Roles

Array = npt.NDArray[Any]


class TunedKernel(Algorithm[KernelSettings, TunedShard]):
    """A sum of a Gaussian and a Laplace kernel whose settings are chosen on rows held out."""

    name: ClassVar[str] = "kernel"
    description: ClassVar[str] = (
        "a kernel machine that learns how much each column matters and chooses its own settings"
    )
    settings_type = KernelSettings
    shard_type = TunedShard
    # Below, each part of the rows is held out in turn, and fewer directions are used.
    probe_rows: ClassVar[tuple[int, int]] = (SMALL, SMALL + 1000)

    def train(
        self,
        party: Party,
        settings: KernelSettings,
        budget: BudgetFile | None = None,
        job: str = "",
    ) -> TunedShard:
        return training.train(party, settings)

    def predict(self, party: Party, shard: TunedShard) -> Array | None:
        return training.predict(party, shard)

    def exposure(self, settings: KernelSettings) -> Exposure:
        searched, model = (FDSKL.exposure(block) for block in _blocks(settings))
        opened = zip(searched.opened, model.opened, strict=True)
        return Exposure(
            level=model.level,
            components=settings.all_components(),
            opened=tuple(_added(settings.searches(), *both) for both in opened),
            prediction_bits=model.prediction_bits,
        )

    def messages(self, settings: KernelSettings) -> list[Disclosure]:
        found: list[Disclosure] = []
        for block in _blocks(settings):
            found += [one for one in FDSKL.messages(block) if one not in found]
        found += [SKETCHES, CHOICE]
        if settings.hides:
            found.append(TRIAL)
        if len(settings.label_parties) > 1:
            found.append(SIGNS)
        if settings.n_components == "auto" and not settings.hides:
            found.append(GROWTH)
        return found

    def routes(self, settings: KernelSettings) -> list[Route]:
        everybody, leader = settings.parties, settings.label_parties[:1]
        ways = ways_of(_blocks(settings)[-1]) | {
            CHOICE.name: (leader, everybody),
            TRIAL.name: (leader, everybody),
            GROWTH.name: (leader, everybody),
            SIGNS.name: (leader, settings.label_parties),
        }
        everywhere = (everybody, everybody)
        return [Route(one, *ways.get(one.name, everywhere)) for one in self.messages(settings)]

    def alone(self, settings: KernelSettings, party: str) -> KernelSettings:
        return msgspec.structs.replace(
            settings, parties=(party,), label_parties=(party,), disclosure="open"
        )

    def linear(self, settings: KernelSettings) -> tuple[Algorithm[Any, Any], Any] | None:
        """Return FDSKL with a linear kernel, at the same level."""
        given = {name: getattr(settings, name) for name in ("parties", "label_parties", "outputs")}
        straight = FdsklSettings(
            **given,
            regression=settings.regression,
            seed=settings.seed,
            kernel="linear",
            scale="standard",
            n_components=LINEAR_DIRECTIONS,
            loss="square" if settings.regression else "logistic",
            disclosure=settings.disclosure,
        )
        return FDSKL, straight

    def prediction_shows(self, settings: KernelSettings) -> str:
        return FDSKL.prediction_shows(_blocks(settings)[-1])

    def cost(self, settings: KernelSettings, rows: int, columns: int) -> Cost:
        searched = FDSKL.cost(settings.search_block(rows), settings.search_rows(rows), columns)
        passes = settings.searches(rows)
        model = FDSKL.cost(settings.model_block(sum(settings.growth(rows))), rows, columns)
        numbers = settings.search_width(rows) * settings.sketches() * settings.rounds(rows)
        return Cost(
            {
                name: passes * searched.bytes_sent[name]
                + model.bytes_sent[name]
                + 4 * numbers * (len(settings.parties) - 1) * (name in settings.label_parties)
                for name in settings.parties
            },
            passes * (searched.rounds + 1) + model.rounds,
            {
                name: passes * searched.memory[name] + model.memory[name]
                for name in settings.parties
            },
            # Cosine and sine of each phase, several bandwidths, and a path of penalties.
            2 * (4 * passes * searched.multiplications + 2 * model.multiplications),
        )

    def known_answers(self, shard: TunedShard, rows: Array) -> Array:
        """Encode rows, and project them on the party's own directions."""
        encoded = shard.encoding.apply(Table(shard.party, shard.columns, rows))
        block = np.asarray(encoded.block(slice(None)))
        return np.hstack([FDSKL.known_answers(one, block) for one in shard.blocks])

    def facts_for_owner(self, shard: TunedShard) -> dict[str, Any]:
        """Say how much each own column matters, and at a label party what was chosen."""
        ordered = sorted(shard.column_relevance().items(), key=lambda item: -item[1])
        facts = {"relevance": ", ".join(f"{name} {value:.2f}" for name, value in ordered)}
        if shard.trials:
            chosen = shard.trials[-1]
            facts["chosen"] = (
                f"{shard.rounds} rounds of relevance, bandwidths {chosen.gaussian:.2f} (Gaussian) "
                f"and {chosen.laplace:.2f} (Laplace) of the typical distance, "
                f"{shard.n_components:,} directions, penalty {shard.training.penalty:.2g}"
            )
        return facts

    def predicts_log_odds(self, settings: KernelSettings) -> bool:
        return not settings.regression

    def dealer(self, settings: KernelSettings) -> Dealer | None:
        return FDSKL.dealer(settings.search_block())

    def prepared_roles(self, settings: KernelSettings) -> Roles:
        raise InputError.of(
            "algorithm",
            "'fdskl' or 'avfkam' where a dealer prepares ahead: the passes of a search follow one "
            "another",
            self.name,
        )


def _blocks(settings: KernelSettings) -> tuple[FdsklSettings, FdsklSettings]:
    """Return the settings of a pass of the search and of the largest pass over all rows."""
    return settings.search_block(), settings.model_block(settings.most_components())


def _added(times: int, searched: OpenedValues, model: OpenedValues) -> OpenedValues:
    """Add up what all passes may open to one label party: so many searches, and over all rows.

    Each pass has directions of its own, and hidden ones open at most a quarter as many values of a
    row as there are of them: so all of them together do.
    """
    one, other = searched.at_most, model.at_most
    safe = None
    if searched.safe_passes is not None and model.safe_passes is not None:
        safe = times * searched.safe_passes + model.safe_passes
    return OpenedValues(
        searched.label_party,
        OpenedBits(
            times * one.values + other.values,
            one.value_bits,
            times * one.gradients + other.gradients,
            one.gradient_bits,
        ),
        safe_passes=safe,
    )


KERNEL = TunedKernel()
