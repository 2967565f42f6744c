"""The features that FDSKL and AVFKAM learn on: scaling, bandwidth, directions or landmarks, phases.

Each label party gets the phases of its own block of directions, summed once over all parties. That
is AVFKAM's Appendix C, and calls FDSKL's Algorithm 3 for all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
import numpy as np
from scipy import sparse

from vertikal.algorithms.algorithm import Fit, Fitted
from vertikal.algorithms.kernel_machine.bandwidth import agree_on_bandwidth
from vertikal.algorithms.kernel_machine.label_sums import LabelSums
from vertikal.algorithms.kernel_machine.phases import PhasePass
from vertikal.algorithms.kernel_machine.settings import FdsklSettings, Landmarks
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.algorithms.kernel_machine.values import HiddenPass
from vertikal.data.encoding import Encoding, learn_encoding
from vertikal.data.scaling import learn_scaling
from vertikal.errors import InputError
from vertikal.kernels.landmarks import FLOOR, Whitening, landmark_rows, whitening
from vertikal.party.party import Labels, Party
from vertikal.solvers.feature_operator import FeatureOperator
from vertikal.solvers.whitened_operator import WhitenedOperator

Learn = Callable[[Shard, FeatureOperator, Labels], Shard]
Result = TypeVar("Result")


def own_encoding(party: Party, settings: FdsklSettings) -> Encoding | None:
    """Learn the encoding of this party's columns, if the settings name one."""
    kind = settings.encoding
    if kind is None:
        return None
    with party.clock.stage("encode"):
        return learn_encoding(party.table, kind)


def begin_shard(party: Party, settings: FdsklSettings) -> Shard:
    """Return a shard with this party's scaling, the agreed bandwidth and its secret seed.

    The party's table is the encoded one already, where the settings name an encoding.
    """
    settings.check_rows(party.table.rows)
    encoding = party.encoding
    columns = party.table.columns if encoding is None else encoding.columns
    with party.clock.stage("prepare"):
        scaling = learn_scaling(party.table, settings.scale if encoding is None else None)
    with party.clock.stage("bandwidth"):
        bandwidth = agree_on_bandwidth(party, settings, scaling)
    return Shard(
        party.name,
        settings,
        columns,
        scaling,
        bandwidth,
        party.secret("model"),
        encoding=encoding,
    )


def learn_on_features(party: Party, settings: FdsklSettings, learn: Learn) -> Shard:
    """Make the features of all rows by AVFKAM Algorithm 3, then learn on them; return the shard.

    ``learn`` runs at the label parties.
    """

    def work(shard: Shard, operator: FeatureOperator, labels: Labels) -> Shard:
        return _spread(learn(shard, operator, labels), operator)

    shard, learned = _on_features(party, settings, work)
    return shard if learned is None else learned


def learn_several_on_features(
    party: Party, fits: Sequence[Fit], learner: Callable[[Any], Learn]
) -> list[Fitted]:
    """Make the features of all rows once, by the first settings, and learn on some rows each time.

    ``learner`` makes what learns by the settings of a fit. The features of the other rows are there
    as well, so that the leader has their predictions without a message.
    """

    def work(shard: Shard, operator: FeatureOperator, labels: Labels) -> list[Fitted]:
        return [
            _fit(party, replace(shard, settings=fit.settings), operator, labels, fit, learner)
            for fit in fits
        ]

    shard, fitted = _on_features(party, fits[0].settings, work)
    return fitted or [Fitted(replace(shard, settings=fit.settings)) for fit in fits]


def _fit(
    party: Party,
    shard: Shard,
    operator: FeatureOperator,
    labels: Labels,
    fit: Fit,
    learner: Callable[[Any], Learn],
) -> Fitted:
    """Learn on the rows of one fit; predict those that it holds out at the leader."""
    rows, others = np.flatnonzero(fit.trained), np.flatnonzero(fit.predicted)
    part, known = operator, labels
    if len(rows) < operator.rows:
        part = operator.restricted(rows)
        known = labels.some(rows)
    shard = learner(fit.settings)(shard, part, known)
    f = None
    if len(others) and shard.coefficients is not None:
        partial = operator.forward(shard.coefficients, others)
        f = LabelSums(party, party.label_parties).to(party.leader, partial)
    held_out = f * shard.unit + shard.constant if f is not None and party.leads else None
    return Fitted(_spread(shard, operator), held_out)


def _spread(shard: Shard, operator: FeatureOperator) -> Shard:
    """Turn coefficients of whitened features into those of the features that a row has."""
    if isinstance(operator, WhitenedOperator) and shard.coefficients is not None:
        return replace(shard, coefficients=operator.spread(shard.coefficients))
    return shard


def _on_features(
    party: Party,
    settings: FdsklSettings,
    work: Callable[[Shard, FeatureOperator, Labels], Result],
) -> tuple[Shard, Result | None]:
    """Make the features of all rows, and do some work on them at the label parties.

    Meanwhile the others serve passes, if features are hidden or a label party's cache does not hold
    all rows. Returns the shard without coefficients, and at a label party the work's result.
    """
    rows = party.table.rows
    shard = keep_landmarks(party, begin_shard(party, settings))
    kept = settings.cached_rows(rows)
    if settings.asynchronous and kept < rows:
        raise InputError.of(
            "cache_size", f"enough for all {rows:,} rows with schedule='async'", settings.cache_size
        )
    serving = settings.hides or kept < rows
    with party.clock.stage("phases", rows):
        factor = whiten(party, shard)
        phases = HiddenPass(party, shard) if settings.hides else PhasePass(party, shard)
        operator: FeatureOperator | None = phases.gather(rows, kept)
    if operator is not None and factor is not None:
        operator = WhitenedOperator(operator, factor.matrix, factor.gram)
    if operator is None or party.labels is None:
        if serving:
            with party.clock.stage("serve"):
                phases.serve()
        return shard, None
    if settings.asynchronous and settings.stochastic.allow_missing:
        party.save_shard(shard)
    with party.clock.stage("solve"):
        result = work(shard, operator, party.labels)
        if serving:
            phases.finish()
    return shard, result


def keep_landmarks(party: Party, shard: Shard) -> Shard:
    """Add this party's own, scaled coordinates of the landmarks to its shard, if there are any."""
    settings = shard.settings
    if not isinstance(settings.feature_map, Landmarks):
        return shard
    centre, factor = shard.scaling.arrays()
    kept = {}
    for label_party, rows in landmark_rows(
        party.table.rows, settings.widths(), settings.seed
    ).items():
        block = party.table.block(rows)
        dense = block.toarray() if sparse.issparse(block) else block
        kept[label_party] = (dense - centre) * factor
    return replace(shard, landmarks=kept)


def whiten(party: Party, shard: Shard) -> Whitening | None:
    """Sum the distances among landmarks, and return the factor that whitens a label party's block.

    All parties take part. These few distances are summed in 32 bits, whatever the ring of all
    others: the inverse of the kernel among landmarks would magnify their rounding. With several
    label parties each block approximates the whole kernel, and its features carry its share of it.
    """
    settings = shard.settings
    if not isinstance(settings.feature_map, Landmarks):
        return None
    factor = None
    rows = landmark_rows(party.table.rows, settings.widths(), settings.seed)
    finer = msgspec.structs.replace(settings, feature_map=Landmarks(bits=32))
    phases = PhasePass(party, replace(shard, settings=finer))
    for label_party, chosen in rows.items():
        mine = party.name == label_party
        kernel = np.empty((len(chosen), len(chosen)) if mine else (0, 0))
        for where, total in phases.stream(chosen):
            if mine and total is not None:
                kernel[where] = phases.own.decode(total, np.float64)
        if mine:
            factor = whitening(
                kernel, len(chosen) / settings.n_components, FLOOR[settings.feature_map.bits]
            )
    return factor
