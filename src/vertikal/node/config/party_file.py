"""The party file: tables that one organisation offers, to whom, and under which conditions.

    name = "bank"
    key = "bank.key"
    certificate = "bank.crt"
    federation = "federation.toml"
    store = "store"                  # jobs, models and the audit log, readable by the owner only

    [tables.accounts]
    source = "accounts.csv"
    id = "customer"
    features = ["balance", "overdrafts"]

    [policy]
    who = ["lender"]                 # who may submit a job that uses my columns
    disclosures = ["values"]         # "open" and "rounds" only if they are named here
    least_rows = 100

Paths are relative to the party file. No job can use anything that the file does not offer. A file
without tables is that of a party without data, which can only be the dealer of hidden phases.
"""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

import msgspec

from vertikal.algorithms.algorithm import LEVELS
from vertikal.algorithms.catalogue import ALGORITHMS
from vertikal.compute.device.choice import DeviceName
from vertikal.compute.workers.cluster import Workers
from vertikal.data.file_formats import USUAL, CsvDialect
from vertikal.data.row_filter.grammar import parse_filter
from vertikal.errors import InputError
from vertikal.mesh.addresses import check_address
from vertikal.node.config.federation_file import read_toml

MISSING = ("refuse", "mean", "indicator")
"""Treatments of missing cells, as `data.preparation` has them."""
UNKNOWN_IDS = ("reject", "degraded")
DIFFERENCING = ("refuse", "warn")
OUTPUTS = ("text", "json")
DEVICES = get_args(DeviceName)
LEAST_LOG = 1 << 12
MOST_LOGS = 1000
CATALOG = ("none", "names", "summary")
"""Amounts of its offers that a party tells those in ``who``, as `approval.catalog` has them."""
TIMES_OWN_ROWS = 10
"""Ids of another party for each row here, if the policy says nothing else. Lists of customers of
organisations that model something together differ by less; a list beyond it is more likely one of
all the numbers there are."""
UNQUESTIONED_IDS = 10_000
"""Ids that another party may bring also to a small table, if the policy says nothing else."""


class Offer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table, with the columns that jobs may use as features, labels and weights of rows."""

    source: str
    id: str
    features: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    query: str | None = None
    """The SQL query, where ``source`` is a database."""
    rows: str | None = None
    """A filter: the table that is offered has only the rows for which it is true."""
    scores_for: tuple[str, ...] = ()
    """Tables whose models may score the people of this one, which no job is trained on then."""
    missing: str = "refuse"
    categories: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    """Columns by which a job may hold out rows, beside the features."""
    separator: str = ","
    """The character between two cells of a CSV file."""
    decimal: str = "."
    encoding: str = "utf8"

    @property
    def dialect(self) -> CsvDialect | None:
        """The way in which a CSV file is written; None if it is the usual one."""
        found = CsvDialect(self.separator, self.decimal, self.encoding)
        return None if found == USUAL else found


class StandingRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that approves jobs without asking the owner; all of it must fit."""

    who: tuple[str, ...]
    algorithms: tuple[str, ...]
    disclosures: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    most_directions: int | None = None
    per_day: int = 1


class PrivacyLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The privacy budget of all jobs with differential privacy together."""

    epsilon: float
    delta: float


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The conditions under which this party takes part at all, whoever approves."""

    who: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = msgspec.field(default_factory=lambda: tuple(ALGORITHMS))
    disclosures: tuple[str, ...] = ("values", "private")
    """Levels of disclosure that jobs may have, of `LEVELS`."""
    least_rows: int = 100
    most_ids: int | None = None
    """Ids that another party may bring to an alignment; by default `TIMES_OWN_ROWS` times as many
    as the own table has, and `UNQUESTIONED_IDS` whatever it has."""
    most_directions: int = 4096
    most_passes: int | None = None
    """Values of a row that hidden phases may open; by default a quarter of the directions."""
    most_value_bits: int = 6
    most_gradient_bits: int = 12
    most_fits: int = 50
    """Fits of one job: those of its folds, of a linear model to compare with and of its search
    beside the model's own."""
    most_row_bits: int = 1000
    """Bits about a row that all jobs with hidden phases together may open to one receiver."""
    least_difference: int = 10
    differencing: str = "refuse"
    predictions_per_day: int = 1000
    most_questions: int = 32
    """Questions about one person with one model: each tells so many bits as a prediction has."""
    unknown_ids: str = "reject"
    degraded_predictions: bool = False
    """True to take part in scores of ids that some party lacks. Where only this party has the id,
    the score depends on its row alone."""
    most_attempts: int = 20
    """Runs of one job, counting those that were broken off: each shows something once more."""
    proposals_per_day: int = 200
    """Proposals of one submitter that are taken in; as many at once after a quiet day."""
    catalog: str = "names"
    """The part of the offers that those in ``who`` are told, one of `CATALOG`: names of tables and
    columns are what they may use, and nothing of the data."""
    experiments: bool = False
    """True to allow jobs with a ``secret_seed``: whoever knows it knows the directions."""
    privacy: PrivacyLimit | None = None
    standing: tuple[StandingRule, ...] = ()


class Http(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The address of the HTTP endpoint, its token, and its limits."""

    listen: str
    token_file: str
    most_rows: int = 1000
    most_bytes: int = 1 << 20
    per_minute: int = 600


class Monitor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The address of health and metrics, on loopback."""

    listen: str


class ConsoleAddress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The address of the console, which `vertikal party start` then serves."""

    listen: str
    """An address on loopback, or ``unix:`` and the path of a socket for a proxy of the owner's."""
    origin: str | None = None
    """The address under which browsers see it behind a proxy, as ``https://console.bank.example``;
    by default the address on loopback itself."""


class Log(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Forms and places of what the service says."""

    output: str = "text"
    """Form of standard output, one of `OUTPUTS`."""
    file: str | None = None
    """File of JSON lines, which is rotated."""
    most_bytes: int = 10 << 20
    """Bytes of a file before the next one is begun."""
    keep: int = 5
    """Older files that are kept."""


class Compute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The place of this party's own products; no job says anything about it."""

    device: str = "auto"
    """One of `DEVICES`."""
    workers: int = 0
    """Actors of Ray that this party's rows are spread over; 0: none, it computes here."""
    address: str | None = None
    """Address of the Ray cluster, or "auto"; None starts one on this machine."""
    cpus: float | None = None
    """Cores that each worker declares, and threads that it uses."""
    gpus: float = 0
    """GPUs that each worker declares, and computes on."""
    memory: int | None = None
    """Bytes of memory that each worker declares."""
    direct: bool = False
    """Workers are linked with those of other parties that say the same."""
    first_port: int | None = None
    """Port at which the first worker is dialled; None: each at any that is free."""

    def spread(self) -> Workers | None:
        """Return the workers of this party, if it has any."""
        if not self.workers:
            return None
        given = msgspec.structs.asdict(self)
        del given["device"], given["workers"]
        return Workers(count=self.workers, **given)


class PartyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of a party file."""

    name: str
    key: str
    certificate: str
    federation: str
    store: str
    passphrase_file: str | None = None
    """File with the passphrase of the key in its first line; names of variables are replaced, as in
    ``$CREDENTIALS_DIRECTORY/passphrase``."""
    on_proposal: tuple[str, ...] = ()
    """A command and its arguments, run without a shell when a job waits for the owner."""
    tables: dict[str, Offer] = {}
    policy: Policy = Policy()
    http: Http | None = None
    monitor: Monitor | None = None
    console: ConsoleAddress | None = None
    log: Log = Log()
    compute: Compute = Compute()

    @classmethod
    def load(cls, path: Path) -> PartyFile:
        """Read and check a party file."""
        content: PartyFile = read_toml(path, cls, "party file")
        content.check()
        return content

    def tables_of_same_source(self, name: str) -> tuple[str, ...]:
        """List the tables that are made of the rows of one source, this one first.

        Their filters may overlap, so limits that are about a row count all of them together.
        """
        offer = self.tables.get(name)
        if offer is None:
            return (name,)
        made_of = (offer.source, offer.query)
        others = (
            other
            for other, one in self.tables.items()
            if other != name and (one.source, one.query) == made_of
        )
        return (name, *others)

    @property
    def tables_to_train_on(self) -> dict[str, Offer]:
        """The tables that jobs may name: all but those for scoring."""
        return {name: one for name, one in self.tables.items() if not one.scores_for}

    def tables_to_score(self, trained_on: str) -> dict[str, Offer]:
        """Return the tables in which a model trained on this table finds people, in their order.

        Tables for scoring come first, as they stand in the file: what they say of a person is newer
        than the row of training.
        """
        found = {name: one for name, one in self.tables.items() if trained_on in one.scores_for}
        if trained_on in self.tables:
            found[trained_on] = self.tables[trained_on]
        return found

    def check(self) -> None:
        """Refuse values out of range and rules that allow nothing."""
        for name, offer in self.tables.items():
            _check_offer(name, offer)
            for other in offer.scores_for:
                if other not in self.tables_to_train_on:
                    raise InputError.of(
                        f"party file: scores_for of table {name!r}",
                        "tables of this file that jobs are trained on",
                        other,
                    )
        if self.on_proposal and not self.on_proposal[0]:
            raise InputError.of("party file: on_proposal", "a command and its arguments", "")
        policy = self.policy
        _one_of("policy.unknown_ids", policy.unknown_ids, UNKNOWN_IDS)
        _one_of("policy.differencing", policy.differencing, DIFFERENCING)
        _one_of("policy.catalog", policy.catalog, CATALOG)
        for parameter, number, least in (
            ("policy.least_rows", policy.least_rows, 1),
            ("policy.most_ids", 1 if policy.most_ids is None else policy.most_ids, 1),
            ("policy.most_directions", policy.most_directions, 1),
            ("policy.most_passes", 1 if policy.most_passes is None else policy.most_passes, 1),
            ("policy.most_value_bits", policy.most_value_bits, 4),
            ("policy.most_gradient_bits", policy.most_gradient_bits, 8),
            ("policy.most_fits", policy.most_fits, 1),
            ("policy.most_row_bits", policy.most_row_bits, 1),
            ("policy.least_difference", policy.least_difference, 0),
            ("policy.most_attempts", policy.most_attempts, 1),
            ("policy.proposals_per_day", policy.proposals_per_day, 1),
            ("policy.predictions_per_day", policy.predictions_per_day, 0),
            ("policy.most_questions", policy.most_questions, 1),
        ):
            if number < least:
                raise InputError.of(f"party file: {parameter}", f"{least} at least", number)
        for level in policy.disclosures:
            _one_of("policy.disclosures", level, tuple(LEVELS))
        for rule in policy.standing:
            for level in rule.disclosures:
                _one_of("policy.standing.disclosures", level, tuple(LEVELS))
            if not rule.who or not rule.algorithms or not rule.disclosures or rule.per_day < 1:
                raise InputError(
                    "party file: a standing rule must name who, algorithms and disclosures, and "
                    "allow one job a day at least"
                )
        if self.http is not None:
            check_address(self.http.listen, plaintext=True)
        if self.monitor is not None:
            check_address(self.monitor.listen, plaintext=True)
        if self.console is not None:
            _check_console(self.console)
        _one_of("compute.device", self.compute.device, DEVICES)
        try:
            self.compute.spread()
        except InputError as error:
            raise InputError(f"party file: compute.workers: {error}") from None
        _one_of("log.output", self.log.output, OUTPUTS)
        if self.log.most_bytes < LEAST_LOG or not 1 <= self.log.keep <= MOST_LOGS:
            raise InputError(
                f"party file: log.most_bytes must be {LEAST_LOG} at least and log.keep 1 to "
                f"{MOST_LOGS}, got {self.log.most_bytes} and {self.log.keep}"
            )


def _check_console(console: ConsoleAddress) -> None:
    if console.listen.startswith("unix:"):
        if console.listen == "unix:" or console.origin is None:
            raise InputError(
                "party file: console.listen names a socket, which needs its path, and "
                "console.origin: the address that browsers see"
            )
    else:
        check_address(console.listen, plaintext=True)
    if console.origin is not None:
        parts = urlsplit(console.origin)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/"):
            raise InputError.of(
                "party file: console.origin", "as 'https://console.bank.example'", console.origin
            )


def _check_offer(name: str, offer: Offer) -> None:
    columns = (offer.id, *offer.features, *offer.labels, *offer.weights, *offer.splits)
    if len(set(columns)) != len(columns):
        raise InputError(
            f"party file: table {name!r} must name each column once, as id, feature, label, weight "
            "or split"
        )
    if offer.scores_for:
        _check_scoring(name, offer)
    elif not offer.features and not offer.labels:
        raise InputError(f"party file: table {name!r} must offer one column at least, got none")
    if len(offer.separator) != 1 or not offer.separator.isascii() or offer.separator.isalnum():
        raise InputError.of(
            f"party file: separator of table {name!r}", "one character, as ';'", offer.separator
        )
    if offer.decimal not in (".", ",") or offer.decimal == offer.separator:
        raise InputError.of(
            f"party file: decimal of table {name!r}",
            "'.' or ',', and not the separator",
            offer.decimal,
        )
    try:
        codecs.lookup(offer.encoding)
    except LookupError:
        raise InputError.of(
            f"party file: encoding of table {name!r}",
            "one that Python knows, as 'utf8' or 'latin-1'",
            offer.encoding,
        ) from None
    if offer.rows is not None:
        try:
            parse_filter(offer.rows)
        except InputError as error:
            raise InputError(f"party file: table {name!r}: {error}") from None
    _one_of(f"missing of table {name!r}", offer.missing, MISSING)
    others = set(offer.categories) - set(offer.features)
    if others:
        raise InputError(
            f"party file: table {name!r}: categories must be offered features, got "
            f"{sorted(others)[0]!r}"
        )


def _check_scoring(name: str, offer: Offer) -> None:
    """Refuse columns and their reading where the table of training says both."""
    for key in ("features", "labels", "weights", "splits", "categories"):
        if getattr(offer, key):
            raise InputError(
                f"party file: table {name!r} is for scoring (scores_for), and must leave out "
                f"{key}: those of the table that models are trained on count"
            )


def _one_of(parameter: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError.of(f"party file: {parameter}", f"one of {allowed}", value)
