"""A model logged in MLflow: what a run has, what it never has, and what cannot be reached."""

from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner

from tests.node.models.test_evaluation import FACTS, evaluation
from tests.node.shards import shard_of
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.cli import main
from vertikal.errors import InputError
from vertikal.node.models.mlflow_log import log_model, metrics_of, parameters_of
from vertikal.node.models.search_table import SearchTable, Try
from vertikal.node.models.store import ModelStore

SEARCH = SearchTable("auc", 50, (Try({"alpha": 0.1}, 0, 0.5, 100, 0.7),), {"alpha": 0.1})


def stored(folder):
    found = evaluation(contributions={"shop": 0.25, "bank": None})
    models = ModelStore(folder / "models")
    models.save("credit", shard_of(8), FDSKL, evaluation=found, search=SEARCH, facts=FACTS)
    return models.details("credit")


def test_measures_and_settings_have_plain_names(tmp_path):
    found = stored(tmp_path)
    metrics = metrics_of(found)
    auc = found.evaluation.together.numbers["auc"]
    assert (metrics["auc"], metrics["auc_low"], metrics["auc_high"]) == auc
    assert metrics["auc_alone"] == found.evaluation.alone.numbers["auc"].value
    assert metrics["contribution_shop"] == 0.25
    assert "contribution_bank" not in metrics
    assert parameters_of(FACTS) == {
        "n_components": "64",
        "algorithm": "fdskl",
        "rows": "300",
        "held_out": "100",
    }
    assert metrics_of(found._replace(evaluation=None)) == {}


def test_without_mlflow_its_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    monkeypatch.setitem(sys.modules, "mlflow.exceptions", None)
    with pytest.raises(InputError, match=r"vertikal\[mlflow\]"):
        log_model(stored(tmp_path), "file:runs")


@pytest.mark.slow  # MLflow takes seconds to load.
def test_a_run_has_all_but_the_shard(tmp_path):
    tracking = pytest.importorskip("mlflow.tracking")
    found = stored(tmp_path)
    uri = f"file://{tmp_path / 'runs'}"
    words = ["model", "log", "credit", "--store", str(tmp_path), "--mlflow", uri, "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["model"], told["version"]) == ("credit", 1)
    client = tracking.MlflowClient(tracking_uri=uri)
    run = client.get_run(told["run"])
    assert run.data.metrics == pytest.approx(metrics_of(found))
    assert run.data.params == parameters_of(FACTS)
    assert run.data.tags["vertikal.digest"] == found.manifest.digest
    assert run.info.status == "FINISHED"
    assert {one.path for one in client.list_artifacts(told["run"])} == {
        "model-card.json",
        "report.html",
    }
    (card,) = (tmp_path / "runs").rglob("model-card.json")
    assert json.loads(card.read_text())["search"]["chosen"] == {"alpha": 0.1}
    seed = shard_of(8).seed
    logged = b"".join(
        path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()
    )
    assert seed not in logged
    assert seed.hex().encode() not in logged
    # A second one goes to the same experiment.
    again = CliRunner().invoke(main, [*words[:-1], "--experiment", "vertikal"])
    assert "logged credit, version 1, as run" in again.output
    bad = CliRunner().invoke(main, [*words[:6], "gopher://nowhere"])
    assert bad.exit_code != 0
    assert "MLflow" in bad.output
