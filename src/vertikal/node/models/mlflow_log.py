"""A stored model as a run of MLflow: settings, measures, card and page, never its shard."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from vertikal.errors import InputError
from vertikal.metrics.measures import Measures
from vertikal.node.models.model_card import card, what_left
from vertikal.node.models.model_page import model_page
from vertikal.node.models.store import Details

EXPERIMENT = "vertikal"
MOST_CHARACTERS = 500
"""Characters of a parameter that every server takes."""


def log_model(found: Details, uri: str, experiment: str = EXPERIMENT) -> str:
    """Log what is stored about a model as one finished run; return the run's id.

    The shard, with the party's secret seed, stays where it is.
    """
    client, refusal = _client(uri)
    one = found.manifest
    title = f"{one.name}, version {one.version}"
    try:
        known = client.get_experiment_by_name(experiment)
        number = client.create_experiment(experiment) if known is None else known.experiment_id
        tags = {
            "vertikal.party": one.party,
            "vertikal.kind": one.kind,
            "vertikal.library": one.library,
            "vertikal.digest": one.digest,
        }
        run: str = client.create_run(number, tags=tags, run_name=title).info.run_id
        for name, value in parameters_of(one.facts).items():
            client.log_param(run, name, value)
        for name, measured in metrics_of(found).items():
            client.log_metric(run, name, measured)
        left = [list(row) for row in what_left(found.record)]
        told = {**card(one, found.evaluation, found.search), "left": left}
        client.log_dict(run, told, "model-card.json")
        client.log_text(run, model_page(*found), "report.html")
        client.set_terminated(run)
    except refusal as error:
        words = " ".join(str(error).split())
        raise InputError(f"MLflow at {uri!r} takes no model: {words[:300]}") from None
    return run


def parameters_of(facts: Mapping[str, Any]) -> dict[str, str]:
    """Write settings and sizes of a model as MLflow has parameters: texts by name."""
    found = {name: value for name, value in facts.get("settings", {}).items()}
    found |= {name: facts[name] for name in ("algorithm", "rows", "held_out") if name in facts}
    return {name: str(value)[:MOST_CHARACTERS] for name, value in found.items()}


def metrics_of(found: Details) -> dict[str, float]:
    """List all measures by name: ``auc``, its interval, and ``auc_alone`` and ``auc_linear``."""
    evaluation = found.evaluation
    if evaluation is None:
        return {}
    metrics = dict(_numbers(evaluation.together, "", interval=True))
    metrics |= _numbers(evaluation.alone, "_alone")
    if evaluation.linear is not None:
        metrics |= _numbers(evaluation.linear, "_linear")
    for name, loss in evaluation.contributions.items():
        if loss is not None:
            metrics[f"contribution_{name}"] = loss
    for number, value in enumerate(evaluation.folds):
        if value is not None:
            metrics[f"{evaluation.together.main}_fold_{number + 1}"] = value
    return metrics


def _numbers(
    measures: Measures, ending: str, *, interval: bool = False
) -> Iterator[tuple[str, float]]:
    for name, one in measures.numbers.items():
        ends = {"": one.value, "_low": one.low, "_high": one.high} if interval else {"": one.value}
        for end, value in ends.items():
            if value is not None:
                yield f"{name}{ending}{end}", value


def _client(uri: str) -> tuple[Any, tuple[type[Exception], ...]]:
    """Make a client of the server at this address, and name the errors that it may raise."""
    # Nothing but the model's own numbers is to leave, and only for the server that was named.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    if "://" not in uri or uri.startswith("file:"):
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ImportError as missing:
        raise InputError(
            "`vertikal model log` needs MLflow: pip install 'vertikal[mlflow]'"
        ) from missing
    refusal = (MlflowException, OSError, ImportError)
    try:
        return MlflowClient(tracking_uri=uri), refusal
    except refusal as error:
        words = " ".join(str(error).split())
        raise InputError(f"MLflow takes no address {uri!r}: {words[:300]}") from None
