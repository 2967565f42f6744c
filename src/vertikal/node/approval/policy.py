"""The owner's policy, enforced: what a job may use and show, and which jobs a rule approves.

A job is checked when it is submitted, when it is approved, when a run of it begins, and when a
session of predictions begins. Some numbers of the policy are enforced where they are known:
``least_rows`` in the alignment, ``most_ids`` by `check_ids` at the approval and before the
alignment, ``least_difference`` in `differencing.py`, ``predictions_per_day`` in
`predictions/daily_limit.py`, ``most_questions`` in `storage/question_count.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from vertikal.algorithms.algorithm import LEVELS, Exposure
from vertikal.errors import InputError, PeerVisibleError
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.approval.proposals import Proposal
from vertikal.node.config.job_file import Job
from vertikal.node.config.job_fits import exposure_of, fits_of
from vertikal.node.config.party_file import (
    TIMES_OWN_ROWS,
    UNQUESTIONED_IDS,
    Offer,
    PartyFile,
    Policy,
    StandingRule,
)


def offered(file: PartyFile, proposal: Proposal) -> tuple[Offer, tuple[str, ...]]:
    """Return the table and the features of it that a job uses here; refuse what is not offered.

    A job names tables and columns by the names in the party file. It cannot name a file, a query
    or a column that the owner did not list. A dealer without data brings no table.
    """
    part = proposal.job.parties[file.name]
    if part.table is None:
        raise InputError(f"{file.name} brings no table to this job")
    offer = file.tables.get(part.table)
    if offer is None:
        raise InputError(f"{file.name} offers no table {part.table[:60]!r}")
    if offer.scores_for:
        raise InputError(
            f"{file.name} offers table {part.table[:60]!r} to be scored, and not to train on"
        )
    if part.label is not None and part.label not in offer.labels:
        raise InputError(
            f"{file.name} offers no column {part.label[:60]!r} of table {part.table!r} as labels"
        )
    if part.weight is not None and part.weight not in offer.weights:
        raise InputError(
            f"{file.name} offers no column {part.weight[:60]!r} of table {part.table!r} as weights"
        )
    split = proposal.job.split_column(file.name)
    if split is not None and split not in (*offer.features, *offer.splits):
        raise InputError(
            f"{file.name} offers no column {split[:60]!r} of table {part.table!r} to hold out rows "
            "by (splits)"
        )
    columns = offer.features if part.columns is None else part.columns
    for column in columns:
        if column not in offer.features:
            raise InputError(
                f"{file.name} offers no column {column[:60]!r} of table {part.table!r} as a feature"
            )
    if not columns or len(set(columns)) != len(columns):
        raise InputError(
            f"{file.name}: a job must use one column at least of table {part.table!r}, each once"
        )
    return offer, tuple(columns)


def used_features(file: PartyFile, proposal: Proposal) -> tuple[str, ...]:
    """This party's features that a job uses; a dealer without data has none."""
    if proposal.job.parties[file.name].table is None:
        return ()
    return offered(file, proposal)[1]


def check_policy(file: PartyFile, proposal: Proposal) -> None:
    """Raise PeerVisibleError with the first reason why this party must not take part."""
    for objection in objections(file, proposal):
        raise PeerVisibleError(objection)


def check_attempt(file: PartyFile, attempt: int) -> None:
    """Refuse more runs of a job than the policy allows: each run shows something once more."""
    if attempt > file.policy.most_attempts:
        raise PeerVisibleError(f"{file.name} takes part in no more runs of this job")


def check_ids(file: PartyFile, record: JobRecord, own_rows: int) -> dict[str, int]:
    """Return the ids that each other party may bring to the alignment, as it was approved.

    PeerVisibleError if these are more than the policy allows; it does not say how many that are,
    since the number may follow from this party's own rows. A dealer without data brings none and
    meets none.
    """
    job, policy = record.proposal.job, file.policy
    others = [name for name in job.table_parties if name != file.name]
    if file.name not in job.table_parties:
        return {}
    most = policy.most_ids or max(UNQUESTIONED_IDS, TIMES_OWN_ROWS * own_rows)
    brought = {name: ids for name in others if (ids := record.ids_of(name)) is not None}
    for name, ids in brought.items():
        if ids > most:
            raise PeerVisibleError(
                f"policy of {file.name}: {name} brings {ids} ids to the alignment, more than "
                f"most_ids allows; bring those that are meant, or let the owner of {file.name} "
                "raise it"
            )
    return brought


def objections(file: PartyFile, proposal: Proposal) -> list[str]:
    """List the reasons why this party must not take part; the one who asks may read them."""
    policy, job = file.policy, proposal.job
    found = []
    exposure = exposure_of(job)
    if proposal.submitter != file.name and proposal.submitter not in policy.who:
        found.append(f"policy of {file.name}: {proposal.submitter} may not submit jobs to it")
    if job.algorithm not in policy.algorithms:
        found.append(f"policy of {file.name}: algorithm {job.algorithm!r} is not allowed")
    if exposure.level not in policy.disclosures:
        found.append(
            f"policy of {file.name}: disclosure {exposure.level!r} "
            f"({LEVELS[exposure.level]}) is not allowed, only "
            f"{', '.join(map(repr, policy.disclosures)) or 'none'}"
        )
    if exposure.components > policy.most_directions:
        found.append(
            f"policy of {file.name}: {exposure.components} directions per row, at most "
            f"{policy.most_directions} are allowed"
        )
    fits = fits_of(job)
    if fits > policy.most_fits:
        found.append(
            f"policy of {file.name}: {fits} fits in one job, at most {policy.most_fits} are "
            "allowed (most_fits)"
        )
    found += [f"policy of {file.name}: {reason}" for reason in _opened_too_much(policy, exposure)]
    if not policy.experiments:
        found += [f"policy of {file.name}: {reason}" for reason in _for_experiments(job, exposure)]
    if exposure.private and policy.privacy is None:
        found.append(f"policy of {file.name}: it keeps no privacy budget to charge this job to")
    if job.parties[file.name].table is not None:
        try:
            offer = offered(file, proposal)[0]
        except InputError as error:
            found.append(str(error))
        else:
            if exposure.private and (offer.missing != "refuse" or offer.categories):
                found.append(
                    f"table of {file.name}: filling missing cells and reading categories looks at "
                    "all rows, which differential privacy does not count; offer numbers with "
                    "missing = 'refuse'"
                )
    return found


def _opened_too_much(policy: Policy, exposure: Exposure) -> list[str]:
    """List what a job opens of training rows more often or more precisely than allowed."""
    found = []
    hidden = [one for one in exposure.opened if one.safe_passes is not None]
    for opened in hidden:
        most = policy.most_passes or opened.safe_passes or 0
        if opened.at_most.values > most:
            found.append(
                f"max_passes lets {opened.label_party} see {opened.at_most.values} values of each "
                f"row, at most {most} are allowed (most_passes)"
            )
    for numbers, opened_bits, key in (
        ("values", [one.at_most.value_bits for one in hidden], "most_value_bits"),
        ("gradients", [one.at_most.gradient_bits for one in hidden], "most_gradient_bits"),
    ):
        bits, allowed = max(opened_bits, default=0), getattr(policy, key)
        if bits > allowed:
            found.append(
                f"{numbers} of {bits} bits are opened, at most {allowed} are allowed ({key})"
            )
    return found


def _for_experiments(job: Job, exposure: Exposure) -> list[str]:
    """List settings for reproducing papers, which show more than the job's level says."""
    found = []
    if job.secret_seed is not None:
        found.append("secret_seed shows every party's directions, and is for experiments only")
    if job.masking != "pads":
        found.append(f"masking {job.masking!r} is for experiments only, use 'pads'")
    return [*found, *exposure.experiments]


def standing_rule(
    file: PartyFile, proposal: Proposal, columns: Iterable[str], today: int
) -> StandingRule | None:
    """Find the rule that approves this job without asking the owner, if there is one.

    ``today`` counts the jobs that were approved by rule in the last 24 hours.
    """
    columns = tuple(columns)
    for rule in file.policy.standing:
        if not rule_objections(file, rule, proposal, columns, today):
            return rule
    return None


def rule_objections(
    file: PartyFile, rule: StandingRule, proposal: Proposal, columns: Iterable[str], today: int
) -> list[str]:
    """List what does not fit a standing rule about a job; nothing if the rule approves it."""
    job, exposure = proposal.job, exposure_of(proposal.job)
    most = rule.most_directions or file.policy.most_directions
    found = []
    if proposal.submitter not in rule.who:
        found.append(f"it is for {', '.join(rule.who)}, and {proposal.submitter} asks")
    if job.algorithm not in rule.algorithms:
        found.append(f"it is for {', '.join(rule.algorithms)}, and this is {job.algorithm}")
    if exposure.level not in rule.disclosures:
        found.append(f"it allows level {', '.join(rule.disclosures)}, not {exposure.level}")
    others = [] if rule.columns is None else sorted(set(columns) - set(rule.columns))
    if others:
        found.append(f"it does not name {', '.join(others)}")
    if exposure.components > most:
        found.append(f"it allows {most:,} directions, and these are {exposure.components:,}")
    if today >= rule.per_day:
        found.append(f"it approves {rule.per_day:,} jobs a day, and {today:,} were approved today")
    return found
