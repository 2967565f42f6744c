"""The interface of an algorithm: all that the rest of the tree may ask about one.

Each algorithm's folder has a module `algorithm` with one object of this kind, and `catalogue` has a
line that names it. Services, commands and the model store speak to that object only, so none of
them knows the algorithms by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Generic, Protocol, TypeVar

import msgspec

from vertikal.errors import InputError
from vertikal.parameters import Count, Parameters, build

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from vertikal.party.party import Party
    from vertikal.privacy.budget import BudgetFile
    from vertikal.privacy.ledger import Disclosure
    from vertikal.secure.dealing_ahead import DealingAhead
    from vertikal.secure.hidden.openings import OpenedBits
    from vertikal.secure.hidden.roles import Roles

FROM_THE_JOB = ("parties", "label_parties", "outputs")
"""Settings that follow from the job's parties and classes; ``[settings]`` cannot have them."""


class JobSettings(Parameters, frozen=True, kw_only=True):
    """Settings of any algorithm, of which these follow from the job or from the labels.

    ``outputs`` is the number of functions that are learned together, ``seed`` that of all public
    randomness.
    """

    parties: tuple[str, ...]
    label_parties: tuple[str, ...]
    outputs: Count = 1
    regression: bool = False
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0


class ModelShard(Protocol):
    """Shard of any algorithm: a dataclass that msgspec can write, arrays apart."""

    @property
    def party(self) -> str: ...

    @property
    def columns(self) -> tuple[str, ...]: ...


WITHOUT_DEALER: Final = "values without a dealer"

LEVELS: Mapping[str, str] = {
    "open": "label parties see the summed features of every training row",
    "values": "nobody sees a feature; the label party sees predictions of the training rows, as "
    "often and as precisely as the policy allows, and one that deviates sees features in their "
    "place",
    WITHOUT_DEALER: "as 'values', between two parties alone: no third one has to be trusted, and "
    "that nobody sees a feature rests on a lattice encryption under the label party's key",
    "sealed": "nothing but predictions is opened",
    "rounds": "the label party sees the joint prediction of every training row in every round, "
    "exactly; over the rounds these tell the others' columns",
    "kernel": "the label party sees all inner products of rows over all columns, hence all "
    "distances; as many known rows as the others have columns give it their columns of all rows",
    "private": "the label party sees joint predictions of every training row under noise, within "
    "the privacy budget of each party",
}
"""Levels of disclosure by name, which a policy allows or not, and what each shows."""

SettingsT = TypeVar("SettingsT", bound=JobSettings)
ShardT = TypeVar("ShardT", bound=ModelShard)


@dataclass(frozen=True)
class OpenedValues:
    """Numbers about training rows, and gradients, that one label party sees in training."""

    label_party: str
    at_most: OpenedBits
    """Values of a row and gradients about a direction, and their bits."""
    safe_passes: int | None = None
    """As many values of a row as a policy allows that states no number itself; None if the level
    shows them all, and allowing the level allows them."""
    distances: int = 0
    """Distances between two rows each."""


@dataclass(frozen=True)
class Exposure:
    """Numbers by which a party's policy bounds what a job shows of its rows."""

    level: str
    """Level of disclosure, one of `LEVELS`."""
    components: int = 0
    """Random directions or landmarks per row."""
    opened: tuple[OpenedValues, ...] = ()
    """Numbers that each label party gets to see in training, but for those under noise that a
    privacy budget bounds."""
    prediction_bits: int = 0
    """Bits that one prediction tells about the person asked for, if features are hidden; else 0."""
    experiments: tuple[str, ...] = ()
    """One sentence for each setting that is only meant to reproduce a paper."""
    private: bool = False
    """True if the job promises differential privacy, for which each party keeps a budget."""


@dataclass(frozen=True)
class Cost:
    """Price of a training run by formula, at most."""

    bytes_sent: dict[str, int]
    """Bytes by the party that sends them."""
    rounds: int
    """Messages that wait for one another."""
    memory: dict[str, int]
    """Bytes that each party holds."""
    multiplications: float
    """Multiplications of the busiest party, for an estimate of its time."""


@dataclass(frozen=True)
class Fit:
    """One of several fits on the same table: its settings, and the rows that it is trained on."""

    settings: Any
    trained: npt.NDArray[np.bool_]  # (rows,)
    held_out: npt.NDArray[np.bool_] | None = None  # (rows,), those it predicts; None: all others

    @property
    def predicted(self) -> npt.NDArray[np.bool_]:
        """The rows that this fit predicts, (rows,)."""
        return ~self.trained if self.held_out is None else self.held_out


@dataclass(frozen=True)
class Fitted:
    """Shard of one fit, and at the leader f (rows, outputs) of the rows that it predicts."""

    shard: Any
    held_out: npt.NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Route:
    """Ways of one kind of message: each of ``senders`` may send it to each of ``receivers``."""

    disclosure: Disclosure
    senders: tuple[str, ...]
    receivers: tuple[str, ...]

    def pairs(self) -> list[tuple[str, str]]:
        """List sender and receiver of each way; nobody sends to itself."""
        return [(one, other) for one in self.senders for other in self.receivers if one != other]


@dataclass(frozen=True)
class Dealer:
    """Party that sends random masks to others and may take part without a table."""

    name: str
    receivers: tuple[str, ...]


class Algorithm(ABC, Generic[SettingsT, ShardT]):
    """One algorithm: its programs, and what people and services have to know about it.

    `train` and `predict` are the programs that every party runs. The other methods answer questions
    about settings that `read_settings` returned, or about shards. Objects of this kind have no
    state.
    """

    name: ClassVar[str]
    """Name in job files and policies."""
    description: ClassVar[str]
    """Kind of model that it trains, in words that fit after "computes"."""
    settings_type: type[SettingsT]
    shard_type: type[ShardT]
    probe_rows: ClassVar[tuple[int, int]] = (300, 900)
    """Rows of the two runs through which a plan draws its line."""

    @abstractmethod
    def train(
        self,
        party: Party,
        settings: SettingsT,
        budget: BudgetFile | None = None,
        job: str = "",
    ) -> ShardT:
        """Train and return this party's shard.

        ``budget`` is the party's own budget file, if it keeps one; a job with differential privacy
        is charged to it under the name ``job`` before anything leaves the party.
        """

    @abstractmethod
    def predict(self, party: Party, shard: ShardT) -> npt.NDArray[np.float64] | None:
        """Return f (rows, outputs) of all rows of the party's table at the leader, else None."""

    def read_settings(
        self,
        written: Mapping[str, Any],
        parties: tuple[str, ...],
        label_parties: tuple[str, ...],
        outputs: int = 1,
    ) -> SettingsT:
        """Return the settings of a job as its file has them; InputError names one that is wrong."""
        for name in FROM_THE_JOB:
            if name in written:
                raise InputError.of("settings", f"without {name!r}: it follows from the job", name)
        drawn = {"parties": parties, "label_parties": label_parties, "outputs": outputs}
        return build(self.settings_type, {**written, **drawn}, "settings", FROM_THE_JOB)

    @abstractmethod
    def exposure(self, settings: SettingsT) -> Exposure:
        """Return the numbers by which policies bound this job."""

    @abstractmethod
    def messages(self, settings: SettingsT) -> list[Disclosure]:
        """List all kinds of messages of training, with what their receivers learn."""

    def routes(self, settings: SettingsT) -> list[Route]:
        """Say of each kind of message of training who may send it to whom; by default all to all.

        A drawing for owners shows them. Each message of a run goes one of these ways.
        """
        everybody = settings.parties
        return [Route(one, everybody, everybody) for one in self.messages(settings)]

    @abstractmethod
    def prediction_shows(self, settings: SettingsT) -> str:
        """Say who gets to see what when a row is predicted, in one sentence."""

    @abstractmethod
    def cost(self, settings: SettingsT, rows: int, columns: int) -> Cost:
        """Estimate the price of training on ``rows`` rows and ``columns`` columns per party."""

    def grows_faster(self, settings: SettingsT) -> bool:
        """Return True if `cost` grows faster than the rows, as by their square; by default not.

        A plan then adds to its line what the formula has above a line.
        """
        return False

    @abstractmethod
    def known_answers(self, shard: ShardT, rows: npt.NDArray[np.float64]) -> Any:
        """Compute this party's own part of a prediction of invented rows: (rows, numbers).

        The store keeps them beside the shard, and compares them when it is loaded: a library that
        draws or multiplies differently would make another model of the same files.
        """

    def facts_for_owner(self, shard: ShardT) -> dict[str, Any]:
        """Return what `vertikal model show` tells the owner about its shard; nothing by default."""
        return {}

    def to_store(self, shard: ShardT) -> ShardT:
        """Return the shard without what differs between equal runs, such as seconds."""
        return shard

    @abstractmethod
    def predicts_log_odds(self, settings: SettingsT) -> bool:
        """Return True if predictions are log-odds, so that probabilities follow from them."""

    def probabilities(
        self, settings: SettingsT, f: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64] | None:
        """Return the probability of +1 for each prediction; None if it cannot be told."""
        from scipy.special import expit

        return expit(f) if self.predicts_log_odds(settings) else None

    def threshold(self, shard: ShardT) -> float:
        """Return the f above which a row is of the positive one of two classes."""
        return 0.0

    def alone(self, settings: SettingsT, party: str) -> SettingsT:
        """Return the settings of the same learner at one label party alone, where nothing is sent.

        An algorithm with levels of disclosure takes the one that hides nothing.
        """
        return msgspec.structs.replace(settings, parties=(party,), label_parties=(party,))

    def labels_in_parts(self, settings: SettingsT) -> bool:
        """Return True if each label party may label some of the rows; by default it labels all."""
        return False

    def relevance_shows(self, settings: SettingsT) -> str | None:
        """Say who learns what from `column_relevance`; None, as by default, if it is not there."""
        return None

    def column_relevance(self, party: Party, shard: ShardT) -> dict[str, float]:
        """Compute how much each of this party's own columns matters, over the rows of its table.

        All parties take part; each learns of its own columns, by name, its most relevant one
        being 1.
        """
        raise InputError.of("algorithm", "one that tells owners of their columns", self.name)

    def shares_features(self, first: SettingsT, second: SettingsT) -> bool:
        """Return True if fits with these settings need one pass over the rows for both.

        `fit_several` then fits both, also on different rows, and tells predictions of the rows that
        a fit was not trained on without another message. By default each fit is a run of its own.
        """
        return False

    def fit_several(self, party: Party, fits: Sequence[Fit]) -> list[Fitted]:
        """Fit several times on the features of all rows, which are made once."""
        raise InputError.of("algorithm", "one whose fits can share features", self.name)

    def smaller(self, settings: SettingsT, share: float) -> SettingsT:
        """Return settings for a try on a share of the directions; as they are if it has none."""
        return settings

    def linear(self, settings: SettingsT) -> tuple[Algorithm[Any, Any], Any] | None:
        """Return a linear learner on all columns to compare with, and its settings.

        It shows no more of a row than the same level allows. None if there is no such learner, or
        if this one is linear itself.
        """
        return None

    def can_spare_label_parties(self, settings: SettingsT) -> bool:
        """Return True if the others may finish without a label party that vanishes.

        By default a run needs everybody.
        """
        return False

    def dealer(self, settings: SettingsT) -> Dealer | None:
        """Return the dealer of this job, if it has one; none by default."""
        return None

    def prepared_roles(self, settings: SettingsT) -> Roles:
        """Return the roles for which the dealer may prepare its part ahead of a run.

        InputError if it cannot.
        """
        raise InputError.of("algorithm", "one with a dealer", self.name)

    def prepare(self, dealing: DealingAhead, settings: SettingsT, rows: int) -> None:
        """Run the dealer's part of a training run on ``rows`` rows alone, ahead of it."""
        raise InputError.of("algorithm", "one with a dealer", self.name)
