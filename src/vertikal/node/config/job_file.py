"""The job file: one TOML file that says what to train, by which parties, on which tables.

    algorithm = "fdskl"              # or "avfkam", "kernel", "admm", "gram"
    timeout = 300
    [settings]                       # of the algorithm, most as the estimators' parameters
    n_components = 512
    scale = "standard"
    [parties.lender]                 # the order of the parties is the order of the ranks
    table = "lender.csv"
    label = "default"                # a label party names its column of labels
    positive = "yes"                 # the class whose probability is predicted
    [parties.bank]
    table = "bank.csv"
    columns = ["balance"]            # all that are offered, if left out
    [parties.notary]                 # a dealer without data says how many rows the others have;
    rows = 30000                     # between services nothing: they tell it
    [evaluation]                     # the model is measured on rows that it was not trained on
    holdout = 0.2                    # replaces = "no worse", at the top, compares it with the last
    [search.settings]                # settings to try, of which the best are the model's
    alpha = [1e-3, 1e-4]

`vertikal run` reads the tables from files beside the job, whose rows are the same people in the
same order. A party may also name a ``test`` table of other people there, with the same columns; if
all do, their values are predicted after training. Between services a table is the name under which
its owner offers it, and rows are aligned by their ids. ``secret_seed`` draws the parties' private
seeds from a number, so that a run can be repeated bit for bit: for experiments only, since whoever
knows it knows every party's directions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from vertikal.algorithms.catalogue import algorithm_named
from vertikal.data.labels import LabelPlan, class_name
from vertikal.errors import InputError
from vertikal.node.config.evaluation_plan import EvaluationPlan
from vertikal.node.config.federation_file import read_toml
from vertikal.node.config.search_plan import SearchPlan
from vertikal.parameters import LARGEST, Parameters, build
from vertikal.secure.keys.prg import derive_key, fresh_key

Seconds = Annotated[float, msgspec.Meta(gt=0, lt=1e9, description="a positive number of seconds")]
Lasting = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[1-9][0-9]{0,3}[mhd]\Z",
        description="a whole number with m, h or d, for minutes, hours or days",
    ),
]
ClassName = str | int | float
Factor = Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]


DIGITS = 4
"""Digits of a job's digest in its id, at least; also those that a command must give."""


def job_id(name: str, digest: str, digits: int = DIGITS) -> str:
    """Name a job between services as its owners do, at every party: ``credit-7f3a``."""
    return f"{name}-{digest[:digits]}"


def settings_line(settings: Mapping[str, Any]) -> str:
    """Write settings in one line."""
    return ", ".join(f"{name} = {setting_text(value)}" for name, value in settings.items())


def setting_text(value: object) -> str:
    """Write the value of a setting without quotes and brackets, and with six digits at most."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(map(setting_text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class Part(Parameters, frozen=True):
    """One party's part in a job: a table, the column of labels if any, and features of it.

    The first label party says for all label parties which classes there are: more than two must be
    listed, since the other parties have to know how many functions are learned. A dealer without
    data brings a number of rows only, and between services nothing at all.
    """

    table: str | None = None
    label: str | None = None
    classes: tuple[ClassName, ...] | None = None
    positive: ClassName | None = None
    weight: str | None = None
    class_weight: Literal["balanced"] | dict[str, Factor] | None = None
    columns: tuple[str, ...] | None = None
    missing: Literal["refuse", "mean", "indicator"] | None = None
    categories: tuple[str, ...] = ()
    test: str | None = None
    rows: Annotated[int, msgspec.Meta(ge=2)] | None = None


class Job(Parameters, frozen=True):
    """A job as its file says it.

    ``on_loss`` says what a service does when a party is lost: wait until it is back, or stop. A job
    that is not approved by all in the time of ``expires`` ends. ``replaces`` says whether its model
    takes the place of the last version in any case, or only if it is no worse on held-out rows.
    """

    parties: dict[str, Part]
    algorithm: str = "fdskl"
    settings: dict[str, Any] = msgspec.field(default_factory=dict)
    masking: Literal["pads", "trees"] = "pads"
    shape: Literal["star", "tree", "cycle"] = "star"
    timeout: Seconds = 300.0
    on_loss: Literal["wait", "stop"] = "wait"
    expires: Lasting = "7d"
    replaces: Literal["always", "no worse"] = "always"
    secret_seed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    evaluation: EvaluationPlan | None = None
    search: SearchPlan | None = None

    @classmethod
    def load(cls, path: Path) -> Job:
        """Read the job in this file and check it."""
        job = cls.read_unchecked(path)
        job.check()
        return job

    @classmethod
    def read_unchecked(cls, path: Path) -> Job:
        """Read the job in this file for a service to check, without the algorithms' libraries."""
        content: dict[str, Any] = read_toml(path, dict[str, Any], "job file")
        place = f"job file {path.name!r}"
        try:
            parts = content.get("parties")
            if isinstance(parts, dict) and all(isinstance(one, dict) for one in parts.values()):
                content["parties"] = {}
                for name, part in parts.items():
                    place = f"job file {path.name!r}, [parties.{name}]"
                    content["parties"][name] = build(Part, part, "keys")
                place = f"job file {path.name!r}"
            return build(cls, content, "keys")
        except InputError as error:
            raise InputError(f"{place}: {error}") from None

    def check(self) -> None:
        """Refuse what cannot be run, whoever sent it."""
        if len(self.parties) < 2:
            raise InputError.of("parties", "two at least", list(self.parties))
        if "label_parts" in self.settings and not self._offers("label_parts"):
            raise InputError.of(
                "label_parts",
                f"left out with algorithm {self.algorithm!r}, where every label party labels all "
                "rows; 'fdskl' and 'avfkam' take labels in parts",
                self.settings["label_parts"],
            )
        if self.secret_seed is not None and self.secret_seed >= 1 << 256:
            raise InputError.of("secret_seed", "a number of at most 256 bits", self.secret_seed)
        if not self.label_parties:
            raise InputError.of("label", "named by one party at least", "none")
        given = [name for name, part in self.parties.items() if part.test is not None]
        if given and len(given) < len(self.parties):
            raise InputError.of("test", "named by all parties or by none", f"only by {given}")
        self._check_labels()
        dealer = self.dealer
        for name, part in self.parties.items():
            self._check_part(name, part, dealer)
        if self.evaluation is not None:
            self._check_evaluation(self.evaluation)
        elif self.replaces != "always":
            raise InputError.of(
                "replaces", "'always' without [evaluation], which measures the model", self.replaces
            )
        if self.search is not None:
            self._check_search(self.search)

    def _offers(self, setting: str) -> bool:
        """Return True if the job's algorithm has this setting."""
        return setting in algorithm_named(self.algorithm).settings_type.__struct_fields__

    def _check_labels(self) -> None:
        """Refuse classes and weights that contradict one another, whatever the tables hold."""
        for name, part in self.parties.items():
            for key in ("classes", "positive", "class_weight"):
                if name != self.leader and getattr(part, key) is not None:
                    raise InputError.of(
                        f"{key} of {name}", f"left out: {self.leader} says it for all", name
                    )
            weighs, labels = part.weight is not None, part.label is not None
            if weighs != (labels and self.parties[self.leader].weight is not None):
                raise InputError.of(
                    f"weight of {name}", "named by all label parties, or by nobody", part.weight
                )
        part = self.parties[self.leader]
        names = self.classes
        if part.classes is not None and (len(names) < 2 or len(set(names)) < len(names)):
            raise InputError.of("classes", "two at least, each once", list(names))
        positive = None if part.positive is None else class_name(part.positive)
        if positive and names and (len(names) > 2 or positive not in names):
            raise InputError.of("positive", f"one of two classes {list(names)}", part.positive)
        if isinstance(part.class_weight, dict) and names:
            strange = [name for name in part.class_weight if name not in names]
            if strange:
                raise InputError.of("class_weight", f"of the classes {list(names)}", strange[0])
        if self.algorithm_settings().regression:
            for key in ("classes", "positive", "class_weight"):
                if getattr(part, key) is not None:
                    raise InputError.of(key, "left out in a regression", getattr(part, key))
        elif self.labels_in_parts:
            self._check_parts(part)

    def _check_parts(self, part: Part) -> None:
        """Refuse what a label party would have to know of labels that it does not hold."""
        if part.classes is None:
            raise InputError.of(
                "classes", "listed with label_parts: a part may lack some of them", None
            )
        if isinstance(part.class_weight, str):
            raise InputError.of(
                "class_weight", "numbers by class with label_parts", part.class_weight
            )

    def _check_part(self, name: str, part: Part, dealer: str | None) -> None:
        """Refuse a part that is neither a table nor that of a dealer without data."""
        if part.table is not None:
            if part.rows is not None:
                raise InputError.of(f"rows of {name}", "left out: it names a table", part.rows)
            return
        if dealer != name:
            raise InputError.of(
                f"table of {name}", "named: only the dealer of hidden phases has none", "none"
            )
        if part.columns is not None or part.test is not None:
            raise InputError.of(f"columns and test of {name}", "left out: it has no table", "some")

    def _check_evaluation(self, evaluation: EvaluationPlan) -> None:
        """Refuse to evaluate where that would open more than the job's level or budget says."""
        algorithm, settings = algorithm_named(self.algorithm), self.algorithm_settings()
        if algorithm.exposure(settings).private:
            raise InputError.of(
                "evaluation",
                "left out with differential privacy, whose budget does not cover predictions",
                evaluation.holdout,
            )
        if self.labels_in_parts:
            raise InputError.of(
                "evaluation",
                "left out with label_parts: the first label party measures, and has not all labels",
                evaluation.holdout,
            )
        if algorithm.can_spare_label_parties(settings):
            raise InputError.of(
                "evaluation", "left out where a label party may vanish", evaluation.holdout
            )
        if evaluation.columns and algorithm.relevance_shows(settings) is None:
            raise InputError.of(
                "columns",
                "false unless features are open Fourier features; algorithm 'kernel' tells owners "
                "of their columns at any level",
                True,
            )
        if evaluation.linear and self.masking != "pads":
            raise InputError.of(
                "linear", "false unless masking is 'pads': a linear kernel has no offsets", True
            )
        if evaluation.column is not None and evaluation.column == self.parties[self.leader].label:
            raise InputError.of("evaluation", "by another column than the label", evaluation.column)

    def _check_search(self, search: SearchPlan) -> None:
        """Refuse tries that cannot be run, or that would not all mean the same to the parties."""
        if self.evaluation is not None and self.evaluation.folds is not None:
            raise InputError.of(
                "search",
                "left out with folds, which would measure settings on rows they were chosen by; "
                "use a holdout",
                f"{self.evaluation.folds} folds",
            )
        if self.labels_in_parts:
            raise InputError.of(
                "search",
                "left out with label_parts: the first label party judges, and has not all labels",
                list(search.settings),
            )
        algorithm = algorithm_named(self.algorithm)
        found = self.candidates
        if len(found) < 2:
            raise InputError.of("search", "of two combinations of settings at least", len(found))
        kinds = set()
        for number, one in enumerate(found):
            try:
                settings = self.algorithm_settings(number)
            except InputError as error:
                raise InputError(f"search, {settings_line(one)}: {error}") from None
            exposure = algorithm.exposure(settings)
            if exposure.private or algorithm.can_spare_label_parties(settings):
                raise InputError.of(
                    "search",
                    "left out with differential privacy, and where a label party may vanish",
                    settings_line(one),
                )
            kinds.add((exposure.level, algorithm.dealer(settings)))
        if len(kinds) > 1:
            raise InputError.of(
                "search", "of one level of disclosure, with one dealer", list(search.settings)
            )

    def check_for_services(self) -> None:
        """Refuse what is only meant for tables that are files beside the job."""
        for name, part in self.parties.items():
            if part.rows is not None:
                raise InputError.of(
                    f"rows of {name}",
                    "left out between services: a dealer is told how many rows are common",
                    part.rows,
                )
            if part.missing is not None or part.categories:
                raise InputError.of(
                    f"missing and categories of {name}",
                    "left out between services: its party file says how cells are read",
                    part.missing or list(part.categories),
                )
            if part.test is not None:
                raise InputError.of(
                    f"test of {name}",
                    "left out between services: predictions are asked for by ids",
                    part.test[:60],
                )

    @property
    def dealer(self) -> str | None:
        """The party that deals random masks, if the job has one; it may have a table."""
        dealer = algorithm_named(self.algorithm).dealer(self.algorithm_settings())
        return None if dealer is None else dealer.name

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.parties)

    @property
    def label_parties(self) -> tuple[str, ...]:
        return tuple(name for name, part in self.parties.items() if part.label)

    @property
    def table_parties(self) -> tuple[str, ...]:
        """The parties that bring a table: all but a dealer without data."""
        return tuple(name for name, part in self.parties.items() if part.table is not None)

    @property
    def bare_dealer(self) -> str | None:
        """The dealer without data, if the job has one."""
        bare = [name for name, part in self.parties.items() if part.table is None]
        return bare[0] if bare else None

    @property
    def lifetime(self) -> float:
        """Seconds in which all must have approved the job."""
        return float(self.expires[:-1]) * {"m": 60, "h": 3600, "d": 86400}[self.expires[-1]]

    @property
    def digest(self) -> str:
        """Digest of all that the parties must share; the names of files are left out."""
        bare = {
            name: msgspec.structs.replace(
                part, table=None, columns=None, test=None if part.test is None else ""
            )
            for name, part in self.parties.items()
        }
        shared = msgspec.structs.replace(self, parties=bare)
        return hashlib.sha256(msgspec.json.encode(shared, order="sorted")).hexdigest()

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, if the job lists them."""
        return tuple(class_name(one) for one in self.parties[self.leader].classes or ())

    def label_plan(self, name: str) -> LabelPlan | None:
        """The way in which a label party reads its labels; None at any other party."""
        part, lead = self.parties[name], self.parties[self.leader]
        if part.label is None:
            return None
        return LabelPlan(
            part.label,
            self.algorithm_settings().regression,
            self.classes,
            None if lead.positive is None else class_name(lead.positive),
            part.weight,
            lead.class_weight,
            self.labels_in_parts,
        )

    @property
    def labels_in_parts(self) -> bool:
        """True if each label party may label some of the rows only."""
        return algorithm_named(self.algorithm).labels_in_parts(self.algorithm_settings())

    @property
    def leader(self) -> str:
        """The first label party, which submits the job and speaks for it."""
        return self.label_parties[0]

    @property
    def held_out_predictions(self) -> int:
        """Predictions by the model of each row that is held out: one, and one per contribution.

        Folds have none: what they hold out is predicted by fits of their own.
        """
        if self.evaluation is None or self.evaluation.folds is not None:
            return 0
        return 1 + (len(self.table_parties) if self.evaluation.contributions else 0)

    def split_column(self, name: str) -> str | None:
        """The column of this party by which rows are held out, if there is one."""
        if self.evaluation is None or name != self.leader:
            return None
        return self.evaluation.column

    @property
    def predicts(self) -> bool:
        """True if there are rows to predict after training."""
        return all(part.test is not None for part in self.parties.values())

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """Settings that a search tries, one combination after the other; without a search one."""
        if self.search is None:
            return [{}]
        seed = self.settings.get("seed", 0)
        return self.search.candidates(seed if isinstance(seed, int) and seed >= 0 else 0)

    def algorithm_settings(self, candidate: int = 0) -> Any:
        """Read and check the settings of the job's algorithm, as one candidate of a search has it.

        What all candidates share can be read from the first.
        """
        algorithm = algorithm_named(self.algorithm)
        outputs = len(self.classes) if len(self.classes) > 2 else 1
        written = {**self.settings, **self.candidates[candidate]}
        return algorithm.read_settings(written, self.names, self.label_parties, outputs)

    def secret(self, name: str) -> bytes:
        """A party's own 32 bytes: from the operating system, or from ``secret_seed``."""
        if self.secret_seed is None:
            return fresh_key()
        return derive_key(self.secret_seed.to_bytes(32, "big"), "party", name)
