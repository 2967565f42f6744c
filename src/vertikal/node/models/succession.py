"""Succession of a model's versions: which one predicts, and when a new one takes its place.

A job with ``replaces = "no worse"`` is trained and measured like any other. If its measure on
held-out rows is worse than that of the version in use, it is stored and kept back: predictions go
on with the old version, until a later one is no worse. The label party decides it, which has the
measures and asks for predictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vertikal.metrics.measures import SMALL_IS_GOOD, TITLES
from vertikal.metrics.wording import in_words
from vertikal.node.models.evaluation import Evaluation
from vertikal.node.models.store import Manifest, ModelStore

KEPT_BACK = "kept_back"
"""Fact of a version that is not used: the reason."""


def usable(versions: Iterable[Manifest]) -> list[Manifest]:
    """Return the versions of a model that may predict, oldest first.

    If all of them are kept back, those that they were worse than are gone, and all may.
    """
    known = list(versions)
    return [one for one in known if KEPT_BACK not in one.facts] or known


def reason_to_keep_back(
    models: ModelStore, name: str, evaluation: Evaluation, without: Sequence[Manifest] = ()
) -> str:
    """Say why a new version must not take the place of the one in use; empty if it may.

    ``without`` are versions that the new one replaces in any case. A version in use that was not
    evaluated keeps nobody back: nothing is known of it.
    """
    gone = {one.version for one in without}
    damaged: list[str] = []
    stored = [
        one for one in models.versions(damaged) if one.name == name and one.version not in gone
    ]
    if not stored:
        return ""
    old = usable(stored)[-1]
    before = models.details(name, old.version)[2]
    if before is None:
        return ""
    main = before.together.main
    if evaluation.together.main != main:
        return f"it is not measured by {TITLES[main]}, as version {old.version} is"
    then, now = before.together.numbers[main].value, evaluation.together.numbers[main].value
    if then is None:
        return ""
    if now is not None and (now <= then if main in SMALL_IS_GOOD else now >= then):
        return ""
    return (
        f"{TITLES[main]} {in_words(evaluation.together, main)} held out, worse than "
        f"{in_words(before.together, main)} of version {old.version}, which stays in use"
    )
