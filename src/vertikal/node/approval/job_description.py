"""The description of a job for the owner who decides about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from vertikal.algorithms.algorithm import LEVELS
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.errors import InputError
from vertikal.node.approval.disclosure_limit import steps
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.approval.policy import objections, used_features
from vertikal.node.config.evaluation_plan import HELD_OUT, TRIES
from vertikal.node.config.job_file import Job
from vertikal.node.config.job_fits import batches_of, cost_of, exposure_of
from vertikal.node.config.party_file import TIMES_OWN_ROWS, UNQUESTIONED_IDS
from vertikal.node.config.search_plan import CHOICE
from vertikal.node.printable import listed, printable
from vertikal.node.storage.party_home import PartyHome

COMPUTED, COLUMNS, LEARNS = "What is computed", "Your columns", "Who learns what"
COSTS, LIMITS = "What it costs, at most", "Limits of your policy"
KEYS, DECISIONS = "Keys", "Decisions"
"""Titles of the sections, in their order."""
_SPEED = 2e9
"""Multiplications a second, for the estimate of minutes."""
_BANDWIDTH = 100e6 / 8
"""Bytes a second, for the same: 100 Mb/s."""
_ROUND = 0.02
"""Seconds of one round of messages, for the same."""


@dataclass(frozen=True)
class Section:
    """One part of the description: a title, and lines that each stand on their own."""

    title: str
    lines: list[str]


def describe(home: PartyHome, record: JobRecord, state: str) -> str:
    """Tell an owner all that it should know before it approves."""
    proposal = record.proposal
    lines = [
        f"Job {record.id}: {state}",
        f"  submitted by {proposal.submitter} on {date_text(proposal.submitted)}, digest "
        f"{record.digest}",
        "",
        *in_short(home, record),
    ]
    for section in sections(home, record):
        lines += ["", section.title, *(f"  {line}" for line in section.lines)]
    if record.note:
        lines += ["", f"Note: {record.note}"]
    # Line by line, so that the text of another party cannot begin a line of its own.
    return "\n".join(printable(line) for line in lines)


def sections(home: PartyHome, record: JobRecord) -> list[Section]:
    """Describe a job part by part; texts of other parties may be in the lines."""
    return [
        Section(COMPUTED, _computed(record.proposal.job)),
        Section(f"{COLUMNS} ({home.me})", _columns(home, record)),
        Section(LEARNS, _learns(home, record)),
        Section(COSTS, _cost(home, record)),
        Section(LIMITS, _limits(home, record)),
        Section(KEYS, [_keys(home, record)]),
        Section(DECISIONS, _decisions(record)),
    ]


def _computed(job: Job) -> list[str]:
    algorithm = algorithm_named(job.algorithm)
    lines = [
        f"{algorithm.description}, with {', '.join(job.names)};",
        f"{listed(job.label_parties)} hold{'s' * (len(job.label_parties) == 1)} the "
        "labels. Settings: "
        + (", ".join(_setting(*entry) for entry in job.settings.items()) or "all defaults"),
        *_label_lines(job),
    ]
    if job.secret_seed is not None:
        lines.append("secret_seed is set: whoever reads the job can draw everybody's directions")
    return lines


def _learns(home: PartyHome, record: JobRecord) -> list[str]:
    proposal, job = record.proposal, record.proposal.job
    algorithm = algorithm_named(job.algorithm)
    level = algorithm.exposure(job.algorithm_settings()).level
    lines = [f"level {level!r}: {LEVELS[level]}"]
    lines += [f"{one.what}: {one.learns}" for one in algorithm.messages(job.algorithm_settings())]
    lines += _evaluation(job)
    lines += _fits(job)
    if record.open:
        lines += [f"account: {step}" for step in steps(home, proposal, record.digest)]
    return lines + _ids(home, record)


def _decisions(record: JobRecord) -> list[str]:
    lines = []
    for name in record.proposal.job.names:
        entry = record.decisions.get(name)
        if entry is None:
            lines.append(f"{name}: not decided")
        else:
            decision = entry[1]
            reason = f" ({decision.words})" if decision.words else ""
            lines.append(f"{name}: {decision.verdict}, {date_text(decision.when)}, signed{reason}")
    return lines


def in_short(home: PartyHome, record: JobRecord) -> list[str]:
    """Say in three sentences what a data-protection officer asks first."""
    proposal, job, me = record.proposal, record.proposal.job, home.me
    algorithm = algorithm_named(job.algorithm)
    level = algorithm.exposure(job.algorithm_settings()).level
    people = f"the people whom {listed(job.table_parties)} all have"
    if job.bare_dealer == me:
        return [
            f"{proposal.submitter} asks {me} to send random numbers to others, who train a model "
            f"of {people}.",
            f"{me} brings no data, and learns about nobody; it learns how many people there are.",
            "It must not join forces with a party that it deals for, or these could see more than "
            "is said below.",
        ]
    part = job.parties[me]
    try:
        count = len(record.columns or used_features(home.file, proposal))
        columns = f"{count} column{'s' * (count != 1)}"
    except InputError:
        columns = "columns"
    kept = f"the labels in {part.label} and " if part.label else ""
    asked = [me] if proposal.submitter != me else [name for name in job.names if name != me]
    return [
        f"{proposal.submitter} asks {listed(asked)} to help train a model of {people}, "
        f"with {kept}{columns} of {me}'s table {part.table}, whose cells stay at {me}.",
        f"Every party learns which of its own people all have, and beyond that: {LEVELS[level]}.",
        f"Afterwards {job.leader} can have people scored by their ids, "
        f"{home.policy.predictions_per_day:,} a day at most, to which {me} contributes each time, "
        f"until {me} deletes its part (`vertikal model delete {proposal.name}`).",
    ]


def _label_lines(job: Job) -> list[str]:
    """Say which classes there are and how they weigh, as far as the job says it."""
    part = job.parties[job.leader]
    told = []
    if job.classes:
        told.append(f"classes {', '.join(job.classes)}")
    if part.positive is not None:
        told.append(f"the positive class is {part.positive}")
    if part.class_weight is not None:
        told.append(_setting("class_weight", part.class_weight))
    if part.weight is not None:
        told.append(f"{job.leader} gives each row a weight")
    return [f"Labels: {'; '.join(told)}"] if told else []


def _evaluation(job: Job) -> list[str]:
    """Say what evaluating the model shows."""
    wanted = job.evaluation
    if wanted is None:
        return []
    algorithm, settings = algorithm_named(job.algorithm), job.algorithm_settings()
    times = job.held_out_predictions
    bits = algorithm.exposure(settings).prediction_bits
    if wanted.folds is not None:
        return [
            f"{HELD_OUT.what}: {wanted.way}; {HELD_OUT.learns}",
            f"evaluation: each row is predicted by a fit that was not trained on it"
            f"{'' if wanted.time is None else ', the first rows by none'}. "
            f"{algorithm.prediction_shows(settings)}",
        ]
    told = f", {times * bits:,} bits about a row held out" if bits else ""
    again = f", {TRIES} times that if runs are broken off" if bits else ""
    shuffled = (
        "; once as they are, and once for each party with a table with its rows shuffled"
        if wanted.contributions
        else ""
    )
    columns = []
    if wanted.columns:
        columns = [f"your columns: {algorithm.relevance_shows(settings)}"]
    return [
        *columns,
        f"{HELD_OUT.what}: {wanted.holdout:.0%} of them, {wanted.way}; {HELD_OUT.learns}",
        f"evaluation: each row held out is predicted {times} time{'s' * (times > 1)}{told}{again}"
        f"{shuffled}. {algorithm.prediction_shows(settings)}",
    ]


def _fits(job: Job) -> list[str]:
    """Say which fits a job makes beside the model's own, and what they show."""
    found = []
    bits = exposure_of(job).prediction_bits
    for batch in batches_of(job):
        told = f"{batch.count} {batch.what}"
        if not batch.passes:
            told += ": on the features of the model, without another message"
        elif batch.passes < batch.count:
            told += f": {batch.passes} more passes over the rows serve all of them"
        else:
            told += ": each shows what training shows, of directions of its own"
        if bits:
            told += f", and predicts rows that it was not trained on, to {bits} bits"
            told += f" ({TRIES} times if runs are broken off)"
        found.append(f"fits: {told}")
    if job.search is not None:
        tried = "; ".join(f"{name} of {values}" for name, values in job.search.settings.items())
        found.append(f"search: {tried}; {CHOICE.learns}")
        found.append(f"{HELD_OUT.what}: {job.search.holdout:.0%} of training judge the tries")
    return found


def _keys(home: PartyHome, record: JobRecord) -> str:
    """Say with whom the owner has not compared keys."""
    missing = home.not_compared(record.proposal.job.names)
    if not missing:
        return "you have compared yours with those of all other parties of the job"
    return (
        f"not compared with {', '.join(missing)}: whoever wrote the federation file could read "
        "and answer in their place; `vertikal federation verify` tells how"
    )


def _setting(name: str, value: object) -> str:
    """Write a setting: ``solver = dsg (n_steps = 400)`` if it is a choice with options."""
    if not isinstance(value, Mapping):
        return f"{name} = {value}"
    options = ", ".join(f"{key} = {one}" for key, one in value.items() if key != "name")
    return " ".join([name, "=", *([str(value["name"])] if "name" in value else []), f"({options})"])


def _ids(home: PartyHome, record: JobRecord) -> list[str]:
    job = record.proposal.job
    most = home.policy.predictions_per_day
    if job.bare_dealer == home.me:
        return [
            "ids: you learn how many rows the others have in common, and no id",
            f"predictions: {job.leader} may ask for predictions of ids; you learn how many, up "
            f"to {most} rows a day (predictions_per_day)",
        ]
    lines = [
        "ids: every party learns which of its own rows all parties have, and how many there are",
        *_ids_brought(home, record),
        f"predictions: {job.leader} may ask for predictions of ids it names, up to {most} rows a "
        f"day (predictions_per_day); you learn which ids and which of them all parties have, "
        f"{job.leader} which of them you have",
        *_predictions(home, record),
    ]
    if job.bare_dealer is not None:
        lines.append(f"{job.bare_dealer} brings no data: it learns numbers of rows, and no id")
    return lines


def _ids_brought(home: PartyHome, record: JobRecord) -> list[str]:
    """Say about how many people each other party can find out in the alignment."""
    others = [name for name in record.proposal.job.table_parties if name != home.me]
    known = {name: record.ids_of(name) for name in others}
    told = [
        f"{name} {'says with its approval how many' if ids is None else f'{ids:,} at most'}"
        for name, ids in known.items()
    ]
    most = home.policy.most_ids
    times = (
        f"{TIMES_OWN_ROWS} for each row of your table, {UNQUESTIONED_IDS:,} at least"
        if most is None
        else f"{most:,}"
    )
    return [
        f"ids brought: {', '.join(told)}; of each it learns whether all parties have it. Your "
        f"policy takes {times} (most_ids)"
    ]


def _predictions(home: PartyHome, record: JobRecord) -> list[str]:
    """Say what a prediction shows of the rows asked for."""
    job = record.proposal.job
    shows = algorithm_named(job.algorithm).prediction_shows(job.algorithm_settings())
    most = home.policy.most_questions
    bits = algorithm_named(job.algorithm).exposure(job.algorithm_settings()).prediction_bits
    told = f", which is {most * bits:,} bits about a person at most" if bits else ""
    lines = [
        f"each prediction: {shows}",
        f"questions: up to {most} about one person with this model (most_questions){told}",
    ]
    if home.policy.degraded_predictions:
        lines.append(
            "degraded predictions: your policy allows them; of an id that only you have, this is "
            "about your row alone"
        )
    return lines


def _columns(home: PartyHome, record: JobRecord) -> list[str]:
    job = record.proposal.job
    part = job.parties[home.me]
    if part.table is None:
        dealer = algorithm_named(job.algorithm).dealer(job.algorithm_settings())
        names = ", ".join(dealer.receivers) if dealer else "nobody"
        return [
            f"none: you are the dealer, and send random masks to {names}",
            *(f"against your policy: {reason}" for reason in _objections(home, record)),
        ]
    try:
        columns = record.columns or used_features(home.file, record.proposal)
    except InputError as error:
        return [f"{error}"]
    lines = [f"table {part.table!r}: {', '.join(columns)} as features"]
    rows = home.file.tables[part.table].rows if part.table in home.file.tables else None
    if rows is not None:
        lines.append(f"only of the rows where {rows}")
    if part.label:
        lines.append(f"{part.label} as the label")
    if part.weight:
        lines.append(f"{part.weight} as the weight of each row")
    lines += [f"against your policy: {reason}" for reason in _objections(home, record)]
    return lines


def _objections(home: PartyHome, record: JobRecord) -> list[str]:
    return objections(home.file, record.proposal) if not record.done else []


@dataclass(frozen=True)
class Estimate:
    """Price of a job by formula, at most: bytes that this party sends and holds, and seconds."""

    rows: int
    rounds: int
    bytes_sent: dict[str, int]
    memory: int
    seconds: float


def estimate(home: PartyHome, record: JobRecord) -> Estimate:
    """Estimate what a job costs, on machines and lines of a usual speed."""
    proposal, job = record.proposal, record.proposal.job
    width = max(1, len(record.columns) or 10)
    rows = proposal.rows
    if job.evaluation is not None and job.evaluation.folds is None:
        rows += round(rows * job.evaluation.holdout * (job.held_out_predictions - 1))
    cost = cost_of(job, rows, width)
    most = max(cost.bytes_sent.values())
    seconds = cost.multiplications / _SPEED + most / _BANDWIDTH + cost.rounds * _ROUND
    return Estimate(
        proposal.rows, cost.rounds, dict(cost.bytes_sent), cost.memory[home.me], seconds
    )


def _minutes(seconds: float) -> str:
    return "less than a minute" if seconds < 60 else f"about {round(seconds / 60)} min"


def _cost(home: PartyHome, record: JobRecord) -> list[str]:
    cost, submitter = estimate(home, record), record.proposal.submitter
    sent = cost.bytes_sent.get(home.me, 0)
    return [
        f"{cost.rows:,} rows at most (those of {submitter}), {cost.rounds} rounds",
        f"you send about {sent / 1e6:,.1f} MB, and hold {cost.memory / 1e6:,.0f} MB",
        f"{_minutes(cost.seconds)} at 100 Mb/s, after the alignment of ids",
    ]


def _limits(home: PartyHome, record: JobRecord) -> list[str]:
    """Say how often the submitter may ask; limits of what is shown stand beside what is shown."""
    policy, submitter = home.policy, record.proposal.submitter
    return [
        f"runs of this job: {policy.most_attempts} with those broken off (most_attempts)",
        f"proposals of {submitter}: {policy.proposals_per_day} a day (proposals_per_day)",
    ]


def date_text(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
