"""The ``[evaluation]`` of a job file: which rows are held out of training, and what that shows."""

from __future__ import annotations

from typing import Annotated

import msgspec

from vertikal.errors import InputError
from vertikal.parameters import Parameters
from vertikal.privacy.ledger import Disclosure

TRIES = 3
"""Times that the same prediction of a held-out row may be opened, in runs that are broken off."""
HOLDOUT = 0.2
MOST_FOLDS = 20

HELD_OUT = Disclosure(
    "held-out rows",
    "which of the common rows are held out of training or of a fit, chosen by the label party",
    "each party learns which of its rows these are: at random nothing else, by a time column which "
    "rows are the last or which come before others, by a group column which rows belong to some of "
    "the groups",
    masked=False,
)
TO_PREDICT = Disclosure(
    "predictions to make",
    "which predictions of held-out rows the label party still lacks",
    "nothing about a row",
    masked=False,
)


class EvaluationPlan(Parameters, frozen=True):
    """The rows that are held out of training, and measured with the model.

    They are drawn at random, by whole groups of a ``group`` column, or are the last by a ``time``
    column; both are columns of the first label party, which chooses the rows. With ``folds`` the
    rows are cut into as many parts, each of them is held out of a fit of its own, and the model is
    trained on all rows; by a ``time`` column each part is predicted by a fit on the rows before it,
    and the first rows of all by none. ``contributions`` predicts held-out rows once more for each
    party, with its rows shuffled. ``columns`` lets each party compute for itself how much its own
    columns matter. ``linear`` fits a linear model of all columns too, to compare with; by default
    where features are open.
    """

    holdout: Annotated[float, msgspec.Meta(gt=0, lt=1, description="a share between 0 and 1")] = (
        HOLDOUT
    )
    folds: (
        Annotated[
            int,
            msgspec.Meta(ge=2, le=MOST_FOLDS, description=f"a number from 2 to {MOST_FOLDS}"),
        ]
        | None
    ) = None
    group: str | None = None
    time: str | None = None
    contributions: bool = False
    linear: bool | None = None
    columns: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group is not None and self.time is not None:
            raise InputError.of("evaluation", "by a group or by a time, not by both", "both")
        if self.folds is None:
            return
        if self.holdout != HOLDOUT:
            raise InputError.of("evaluation", "with a holdout or with folds, not with both", "both")
        for name in ("contributions", "columns"):
            if getattr(self, name):
                raise InputError.of(name, "false with folds; use a holdout", True)

    @property
    def column(self) -> str | None:
        """The column by which rows are held out, if there is one."""
        return self.group or self.time

    @property
    def way(self) -> str:
        """The way in which rows are held out, in words."""
        folds = "" if self.folds is None else f"{self.folds} folds, "
        if self.group is not None:
            return f"{folds}whole groups of {self.group}, at random"
        if self.time is None:
            return f"{folds}at random"
        return f"{folds}each later by {self.time}" if folds else f"the last by {self.time}"
