"""The base of all federated estimators: parameters, checks of input, tables, and simulated runs."""

from __future__ import annotations

import math
import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_X_y,
    validate_data,
)

from vertikal.algorithms.kernel_machine.shard import Training
from vertikal.compute.device.choice import DeviceName
from vertikal.compute.workers.cluster import Workers, read_workers
from vertikal.data.column_checks import Bounds, check_bounds, column_bounds
from vertikal.data.preparation import Preparation
from vertikal.data.tables import Table
from vertikal.errors import InputError
from vertikal.estimators.columns import assign_columns, choose_label_parties, cut, refuse_text
from vertikal.estimators.frames import (
    Missing,
    PreparedTables,
    are_numbers,
    has_words,
    is_frame,
    learn_tables,
    replay_tables,
)
from vertikal.estimators.progress import ProgressBars
from vertikal.estimators.reports.measuring import measure_estimator
from vertikal.estimators.reports.run_page import run_page
from vertikal.estimators.simulation import Federation, Outcome, simulate
from vertikal.files import move_over
from vertikal.parameters import Parameters, build, fields_of, read, read_field, spelled_out
from vertikal.party.clock import Observer
from vertikal.party.party import Labels, Party
from vertikal.secure.keys.prg import derive_key, fresh_key

Array = npt.NDArray[Any]
Record = TypeVar("Record", bound=Parameters)

ALL_CONSTANT = "columns: one at least must vary, got constants only, which tell a kernel nothing"
CELLS: Mapping[str, Any] = {"dtype": (np.float64, np.float32), "ensure_all_finite": False}
"""Checks of cells by scikit-learn; those for NaN and infinity are here, and name columns."""
MOST_REMARKS = 5
"""Columns that a warning names."""

Masking = Literal["pads", "trees"]
Seconds = Annotated[
    float,
    msgspec.Meta(gt=0, le=threading.TIMEOUT_MAX, description="a positive number of seconds"),
]


@dataclass(eq=False, repr=False)
class FederatedEstimator(BaseEstimator):
    """The base of all estimators that simulate parties.

    Estimators are dataclasses: their fields are the parameters, and the constructor stores these as
    they are. `fit` makes a settings record of them (`_settings`), which checks them all.
    """

    parties: int | Mapping[str, Any] | Callable[[str], Any] = 2
    _: KW_ONLY
    label_parties: int | str | Sequence[str] | None = None
    missing: Missing = "refuse"
    masking: Masking | None = "pads"
    timeout: float = 300.0
    random_state: Any = None
    verbose: int | bool | Observer = 0

    _settings_type: ClassVar[type[Parameters]]
    _masking_type: ClassVar[Any] = Masking
    _regression: ClassVar[bool] = False
    takes_label_parts: ClassVar[bool] = False
    """True if each label party may label some of the rows only."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "refuse"
        return tags

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; ``deep``, options also singly: ``solver__step_size``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, value in tuple(params.items()):
                if isinstance(value, Parameters):
                    options = msgspec.structs.asdict(value)
                    params |= {f"{name}__{option}": options[option] for option in options}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, and options of a choice singly: ``solver__step_size=0.1``."""
        super().set_params(**{name: params[name] for name in params if "__" not in name})
        options: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            choice, nested, option = name.partition("__")
            if nested:
                options.setdefault(choice, {})[option] = value
        for name, changes in options.items():
            known = {field.name for field in fields_of(self._settings_type)}
            chosen = None
            if name in known and name in self.get_params(deep=False):
                chosen = read_field(self._settings_type, name, getattr(self, name))
            if not isinstance(chosen, Parameters):
                raise InputError.of(name, f"a choice with options {list(changes)}", chosen)
            given = msgspec.structs.asdict(chosen) | changes
            setattr(self, name, build(type(chosen), given, name))
        return self

    def write_report(self, path: str | Path, X: Any = None, y: Any = None) -> Path:
        """Write one HTML page: how the run went, who learned what, the cost and the settings.

        With rows X that training did not see and their y it begins with how good the model is:
        measures with intervals, and curves.
        """
        check_is_fitted(self)
        settings: Any = self.settings_
        shards = getattr(self, "shards_", {})
        kept = {
            name: getattr(shards.get(name), "training", None) for name in settings.label_parties
        }
        page = run_page(
            f"{type(self).__name__}: a training run",
            spelled_out(settings),
            {name: one for name, one in kept.items() if isinstance(one, Training)},
            self.ledger_,
            self.report_,
            objective=getattr(self, "objective_", ()),
            measures=None if X is None else measure_estimator(self, X, y),
        )
        move_over(Path(path), page.encode(), mode=0o666)
        return Path(path)

    def _settings(self, record: type[Record], parties: tuple[str, ...], **drawn: Any) -> Record:
        """Make the settings of a run: this estimator's parameters, and what follows from the data.

        All checks of parameters stand in the record, where job files meet them too.
        """
        read("masking", self.masking, self._masking_type)
        read("timeout", self.timeout, Seconds)
        if self.masking == "trees" and len(parties) < 3:
            raise InputError.of(
                "masking", "'pads' for two parties (one tree is all there is)", "trees"
            )
        known = {field.name for field in fields_of(record)}
        given = {
            name: value for name, value in self.get_params(deep=False).items() if name in known
        }
        label_parties = choose_label_parties(self.label_parties, parties)
        return record(**(given | {"parties": parties, "label_parties": label_parties} | drawn))

    def _tables(
        self, X: Any, assigned: Mapping[str, list[int]], bounds: Bounds | None = None
    ) -> dict[str, Table]:
        """Each party's own table of checked cells; ``bounds`` are those of X, if known already."""
        if isinstance(X, PreparedTables):
            return dict(X.tables)
        tables = cut(X, assigned, self._names())
        # Every party's own check of its columns, by one look at all of them.
        lowest, highest = bounds or column_bounds(X)
        for name, table in tables.items():
            numbers = assigned[name]
            check_bounds(table, lowest[numbers], highest[numbers], varying=False)
        return tables

    def _assigned(self) -> dict[str, list[int]]:
        """Column numbers by party."""
        return assign_columns(self.parties, self.n_features_in_, self._names())

    def _names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _without_constants(
        self, X: Any, assigned: Mapping[str, list[int]]
    ) -> tuple[dict[str, list[int]], Bounds | None]:
        """Leave out dense columns that are the same in each row, with one warning.

        Returns the bounds of all columns too, where it has looked at them.
        """
        if isinstance(X, PreparedTables) or sparse.issparse(X):
            return dict(assigned), None
        lowest, highest = column_bounds(X)
        kept = {
            party: [number for number in numbers if lowest[number] != highest[number]]
            for party, numbers in assigned.items()
        }
        if not any(kept.values()):
            raise InputError(ALL_CONSTANT)
        tables = cut(X, assigned, self._names())
        remarks = [
            f"{tables[party].title(place)} is constant"
            for party, numbers in assigned.items()
            for place, number in enumerate(numbers)
            if number not in kept[party]
        ]
        self._warn_of_columns(remarks)
        return kept, (lowest, highest)

    def _warn_of_columns(self, remarks: Sequence[str]) -> None:
        if remarks:
            shown = "; ".join(remarks[:MOST_REMARKS])
            more = len(remarks) - MOST_REMARKS
            warnings.warn(
                f"columns that tell a kernel nothing are ignored: {shown}"
                + (f"; and {more} more" if more > 0 else ""),
                UserWarning,
                stacklevel=5,
            )

    def _run(
        self,
        tables: Mapping[str, Table],
        label_parties: tuple[str, ...],
        settings: str,
        labels: Labels | Mapping[str, Labels] | None,
        base: bytes,
        program: Callable[[Party], Any],
        dispensable: tuple[str, ...] = (),
    ) -> Outcome:
        """Train: the parties' secrets are derived from ``base``."""
        secrets = {name: derive_key(base, "party", name) for name in tables}
        workers = read_workers(getattr(self, "workers", None))
        return self._simulate(
            tables, label_parties, settings, labels, secrets, program, dispensable, workers
        )

    def _run_joint(
        self,
        X: Any,
        columns: Mapping[str, list[int]],
        label_parties: tuple[str, ...],
        settings: str,
        program: Callable[[Party], Any],
    ) -> Mapping[str, Any]:
        """Run a program of all fitted parties on these rows; its results by party."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        tables = self._tables(X, columns)
        secrets = {name: fresh_key() for name in tables}
        return self._simulate(tables, label_parties, settings, None, secrets, program).results

    def _simulate(
        self,
        tables: Mapping[str, Table],
        label_parties: tuple[str, ...],
        settings: str,
        labels: Labels | Mapping[str, Labels] | None,
        secrets: Mapping[str, bytes],
        program: Callable[[Party], Any],
        dispensable: tuple[str, ...] = (),
        workers: Workers | None = None,
    ) -> Outcome:
        with ProgressBars(self.verbose) as observer:
            federation = Federation(
                tables,
                label_parties,
                labels,
                secrets,
                settings,
                self.masking,
                float(self.timeout),
                observer,
                dispensable=dispensable,
                device=read("device", getattr(self, "device", "cpu"), DeviceName),
                workers=workers,
            )
            return simulate(federation, program)

    def _validate(self, X: Any, y: Any = None, *, reset: bool) -> Any:
        """Check with scikit-learn; a cell that is no number is named with its column and party.

        Frames with words, and with ``missing`` any dense input, are prepared by each party.
        """
        if reset:
            _refuse_missing_labels(y)
            missing = read("missing", self.missing, Missing)
            self.preparations_: Mapping[str, Preparation] = {}
            if has_words(X) or (missing != "refuse" and not sparse.issparse(X)):
                return self._prepare(X, y)
        elif self.preparations_:
            X = self._replayable(X)
            return replay_tables(X, self._assigned(), self._names(), self.preparations_)
        options: dict[str, Any] = {**CELLS, "accept_sparse": "csr", "reset": reset}
        if reset:
            options |= {"ensure_min_samples": 2, "y_numeric": self._regression}
        try:
            return (
                validate_data(self, X, y, **options) if reset else validate_data(self, X, **options)
            )
        except ValueError as error:
            if "convert" in str(error) and "float" in str(error):
                raw = np.asarray(X, object)
                names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
                assigned = assign_columns(self.parties, raw.shape[1], names)
                used = {number for numbers in assigned.values() for number in numbers}
                spare = [number for number in range(raw.shape[1]) if number not in used]
                refuse_text(raw, assigned, names)
                refuse_text(raw, {"(none)": spare}, names)
            raise

    def _replayable(self, X: Any) -> Any:
        """Check rows to be prepared as the training rows were: an array of numbers, or a frame."""
        X = X.toarray() if sparse.issparse(X) else X
        if is_frame(X) and (has_words(X) or not are_numbers(self.preparations_)):
            return validate_data(self, X, reset=False, skip_check_array=True)
        return validate_data(self, X, reset=False, **CELLS)

    def _prepare(self, X: Any, y: Any) -> tuple[PreparedTables, Array]:
        """Learn each party's preparation of its columns, as services do."""
        checks: dict[str, Any] = {"ensure_min_samples": 2, "y_numeric": self._regression}
        if has_words(X):
            validate_data(self, X, y, skip_check_array=True)
            _, y = check_X_y(np.zeros((len(X), 1)), y, estimator=self, **checks)
        else:
            X, y = validate_data(self, X, y, **CELLS, **checks)
        assigned, names = self._assigned(), self._names()
        self.preparations_, tables = learn_tables(X, assigned, names, self.missing)
        if not any(table.width for table in tables.tables.values()):
            raise InputError(ALL_CONSTANT)
        self._warn_of_columns(
            [
                f"party {party!r}: {remark}"
                for party, preparation in self.preparations_.items()
                for remark in preparation.remarks
            ]
        )
        return tables, y

    def _weights(self, sample_weight: Any, X: Any) -> Array:
        weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64))
        if (weights < 0).any():
            raise InputError.of("sample_weight", "not negative", float(weights.min()))
        if not weights.any():
            raise InputError.of("sample_weight", "positive for at least one row", "all zero")
        return weights

    def _randomness(self) -> tuple[bytes, int]:
        """The base of the parties' secrets and the public seed: from the system, or as fixed."""
        if self.random_state is None:
            return fresh_key(), int.from_bytes(os.urandom(7), "big")
        generator = check_random_state(self.random_state)
        return generator.bytes(32), int.from_bytes(generator.bytes(7), "big")


def _refuse_missing_labels(y: Any) -> None:
    """Refuse labels of text with gaps, of which scikit-learn does not say that it means them."""
    labels = np.asarray(y)
    if labels.dtype == object and labels.ndim == 1:
        gaps = sum(one is None or (isinstance(one, float) and math.isnan(one)) for one in labels)
        if gaps:
            raise InputError(
                f"y must hold a label in each row, got {gaps} of {len(labels)} that are missing; "
                "leave these rows out (input contains NaN)"
            )
