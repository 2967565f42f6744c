"""The algorithms that a job can name, each behind the same few functions.

A new algorithm is one class here and one line in `PROGRAMS`. Libraries are loaded when a job needs
them, so that a service starts without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from vertikal.algorithms.kernel_machine.written_settings import plainly
from vertikal.errors import InputError
from vertikal.records import convert

if TYPE_CHECKING:
    from vertikal.node.config.job_file import Job
    from vertikal.party.party import Party
    from vertikal.privacy.budget import BudgetFile
    from vertikal.privacy.ledger import Disclosure

_DRAWN = ("parties", "label_parties", "outputs")
"""Settings that follow from the job and cannot be given."""


@dataclass(frozen=True)
class Cost:
    """What a job takes, by formula: bytes that each party sends, and rounds of messages."""

    bytes_sent: dict[str, int]
    rounds: int
    memory: dict[str, int]
    multiplications: float
    """Multiplications of the busiest party, for an estimate of its time."""


class Program(Protocol):
    """What a service asks of an algorithm."""

    name: str

    def settings(self, job: Job) -> Any:
        """The settings of this job, checked."""

    def disclosure(self, settings: Any) -> str:
        """The level by which policies speak of what a label party gets to see."""

    def directions(self, settings: Any) -> int:
        """How many numbers are drawn per row, by which policies bound a job."""

    def train(
        self, party: Party, settings: Any, budget: BudgetFile | None = None, job: str = ""
    ) -> Any:
        """This party's shard."""

    def spares_label_parties(self, settings: Any) -> bool:
        """Whether the others may finish without a label party that vanishes."""

    def shard_kind(self) -> type[Any]:
        """The class of its shards."""

    def predict(self, party: Party, shard: Any) -> Any:
        """f of all rows of the party's table at the leader, None elsewhere."""

    def has_probabilities(self, settings: Any) -> bool:
        """Whether its predictions are log-odds."""

    def learns(self, settings: Any) -> list[Disclosure]:
        """All kinds of messages of training, and what their receivers learn."""

    def cost(self, settings: Any, rows: int, columns: int) -> Cost: ...


class Fdskl:
    """Doubly stochastic kernel learning (Gu et al. 2020), exact or stochastic solver."""

    name = "fdskl"

    def settings(self, job: Job) -> Any:
        from vertikal.algorithms.kernel_machine.settings import FdsklSettings

        return _settings(job, FdsklSettings)

    def disclosure(self, settings: Any) -> str:
        return str(settings.disclosure)

    def directions(self, settings: Any) -> int:
        return int(settings.n_components)

    def train(
        self, party: Party, settings: Any, budget: BudgetFile | None = None, job: str = ""
    ) -> Any:
        from vertikal.algorithms.kernel_machine import fdskl

        return fdskl.train(party, settings)

    def spares_label_parties(self, settings: Any) -> bool:
        return bool(settings.asynchronous and settings.allow_missing)

    def shard_kind(self) -> type[Any]:
        from vertikal.algorithms.kernel_machine.shard import Shard

        return Shard

    def predict(self, party: Party, shard: Any) -> Any:
        from vertikal.algorithms.kernel_machine import fdskl

        return fdskl.predict(party, shard)

    def has_probabilities(self, settings: Any) -> bool:
        return bool(settings.loss == "logistic" and not settings.regression)

    def learns(self, settings: Any) -> list[Disclosure]:
        from vertikal.algorithms.kernel_machine.bandwidth import BANDWIDTH, DISTANCES, MEAN
        from vertikal.algorithms.kernel_machine.label_sums import PARTIAL, PRODUCTS
        from vertikal.algorithms.kernel_machine.phases import REQUESTS, RESUMED, phases_of
        from vertikal.algorithms.kernel_machine.sealed import DISCLOSURES as SEALED
        from vertikal.algorithms.kernel_machine.stochastic.asynchronous import STEPS
        from vertikal.algorithms.kernel_machine.stochastic.round_robin import ROWS
        from vertikal.algorithms.kernel_machine.values import PASSES, disclosures_of
        from vertikal.party.party import AGREEMENT

        found = [AGREEMENT]
        if isinstance(settings.bandwidth, str):
            found += [DISTANCES if settings.bandwidth == "median" else MEAN, BANDWIDTH]
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
            found += [PARTIAL, PRODUCTS]
        if settings.asynchronous:
            found.append(STEPS)
        elif settings.solver == "dsg" and len(settings.label_parties) > 1:
            found.append(ROWS)
        return found

    def cost(self, settings: Any, rows: int, columns: int) -> Cost:
        cells = rows * settings.n_components
        word = settings.hidden_bits // 8
        owners = settings.label_parties
        passes = 40 if settings.solver == "exact" else 2 * (settings.steps or 32)
        sent = {}
        for name in settings.parties:
            own = settings.widths().get(name, 0) * rows
            sent[name] = (cells - own) * settings.ring_bits // 8
        memory = {name: rows * (columns + 16) * 8 for name in settings.parties}
        for name in owners:
            memory[name] += settings.widths()[name] * rows * settings.ring_bits // 8
        if settings.hides:
            helper, dealer = settings.assistants()
            for name in owners:
                sent[name] += cells // len(owners)
            sent[helper] += cells * (1 + word)
            sent[dealer] += cells * 2 * word
            for name in (*owners, helper, dealer):
                memory[name] += cells * word
            passes = min(passes, settings.iterations(rows) * 2)
            for name in (*owners, helper, dealer):
                sent[name] += passes * (rows + settings.n_components) * word
        rounds = 4 + (2 * passes if settings.hides or len(owners) > 1 else 0)
        work = float(cells) * (columns + passes)
        return Cost(sent, rounds, memory, work)


class Avfkam(Fdskl):
    """AUC maximisation with pairwise losses (Zhang et al. 2024); predicts as FDSKL does."""

    name = "avfkam"

    def settings(self, job: Job) -> Any:
        from vertikal.algorithms.kernel_machine.avfkam_settings import AvfkamSettings

        return _settings(job, AvfkamSettings)

    def train(
        self, party: Party, settings: Any, budget: BudgetFile | None = None, job: str = ""
    ) -> Any:
        from vertikal.algorithms.kernel_machine import avfkam

        return avfkam.train(party, settings)

    def has_probabilities(self, settings: Any) -> bool:
        # Calibrated on rows held out, which sealed training never sees.
        return not settings.seals


class Admm:
    """ADMM sharing (Hu et al. 2019), linear or on each party's own random features."""

    name = "admm"

    def settings(self, job: Job) -> Any:
        from vertikal.algorithms.admm.settings import AdmmSettings

        return _settings(job, AdmmSettings)

    def disclosure(self, settings: Any) -> str:
        # As hidden phases do, it opens predictions of the training rows, round by round.
        return "values"

    def directions(self, settings: Any) -> int:
        return int(settings.n_components) if settings.kernel else 0

    def train(
        self, party: Party, settings: Any, budget: BudgetFile | None = None, job: str = ""
    ) -> Any:
        from vertikal.algorithms.admm import sharing as admm

        return admm.train(party, settings, budget if settings.privacy else None, job)

    def spares_label_parties(self, settings: Any) -> bool:
        return False

    def shard_kind(self) -> type[Any]:
        from vertikal.algorithms.admm.shard import AdmmShard

        return AdmmShard

    def predict(self, party: Party, shard: Any) -> Any:
        from vertikal.algorithms.admm import sharing as admm

        return admm.predict(party, shard)

    def has_probabilities(self, settings: Any) -> bool:
        return bool(settings.loss == "logistic" and not settings.regression)

    def learns(self, settings: Any) -> list[Disclosure]:
        from vertikal.algorithms.admm.sharing import CONTRIBUTIONS, PROGRESS, SHARED, TERMS
        from vertikal.party.party import AGREEMENT

        found = [AGREEMENT, TERMS, CONTRIBUTIONS, SHARED]
        return found if settings.privacy else [*found, PROGRESS]

    def cost(self, settings: Any, rows: int, columns: int) -> Cost:
        width = settings.n_components if settings.kernel else columns
        rounds = min(settings.most_rounds, 60)
        each = rounds * rows * settings.outputs * 8
        sent = {name: each for name in settings.parties}
        leader = settings.label_parties[0]
        sent[leader] = each * (len(settings.parties) - 1)
        memory = {name: rows * width * 8 for name in settings.parties}
        return Cost(sent, 2 * rounds, memory, float(rows) * width * (2 * rounds + width))


PROGRAMS: dict[str, Program] = {one.name: one for one in (Fdskl(), Avfkam(), Admm())}


def program_named(name: str) -> Program:
    if name not in PROGRAMS:
        raise InputError.of("algorithm", f"one of {sorted(PROGRAMS)}", name)
    return PROGRAMS[name]


def _settings(job: Job, kind: Any) -> Any:
    """The job's settings as this structure; InputError says which of them is wrong."""
    for name in _DRAWN:
        if name in job.settings:
            raise InputError.of("settings", f"without {name!r}: it follows from the job", name)
    known = {field.name for field in msgspec.structs.fields(kind)}
    strange = sorted(set(job.settings) - known)
    if strange:
        raise InputError.of("settings", f"some of {sorted(known - set(_DRAWN))}", strange[0])
    written = plainly(job.settings) if "ring_bits" in known else job.settings
    drawn = {"parties": job.names, "label_parties": job.label_parties}
    try:
        return convert({**written, **drawn}, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"settings: {error}") from None
