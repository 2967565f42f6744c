"""Pages of the console about models: evaluation, comparison, scores and deleting."""

from __future__ import annotations

import json

import pytest

from tests.console.browser import ORIGIN, request
from tests.console.test_jobs import words_of
from tests.node.models.test_evaluation import evaluation
from tests.node.shards import shard_of
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.errors import InputError
from vertikal.node.models.store import ModelStore

FACTS = {
    "rows": 300,
    "algorithm": "fdskl",
    "relevance": "balance 1.00, over, drafts 0.25",
    "parties": {"bank": {"table": "people", "label": "default"}, "shop": {"table": "orders"}},
}


@pytest.fixture
def models(world):
    store = ModelStore(world.service.home.store / "models")
    store.save("credit", shard_of(8), FDSKL, evaluation=evaluation(), facts=FACTS)
    store.save("credit", shard_of(16), FDSKL, facts={"rows": 400})
    return store


def test_models_are_listed_and_shown(models, owner):
    listed = words_of(owner.get("/models").text)
    assert "credit 2" in listed
    assert "300" in listed
    page = owner.get("/models/credit/1").text
    text = words_of(page)
    assert "Line chart: ROC." in page
    assert "Line chart: Calibration." in page
    assert "AUC 0.9" in text
    assert "balance: 1.00; over, drafts: 0.25" in page
    assert "shop orders all that it offers" in text
    assert "Score people" in text
    assert "Score people" not in owner.get("/models/credit/2").text


def test_files_to_keep_are_those_of_the_commands(models, owner):
    report = owner.get("/models/credit/1/report")
    assert report.header("content-disposition") == 'attachment; filename="credit-1.html"'
    assert report.text.startswith("<!doctype html>")
    card = json.loads(owner.get("/models/credit/1/card").text)
    assert (card["version"], card["facts"]["rows"]) == (1, 300)


def test_two_are_compared(models, owner):
    page = owner.get("/models/compare?first=credit:1&second=credit:2")
    assert page.status == 200
    assert "rows 300 400" in words_of(page.text)
    assert owner.get("/models/compare?first=credit&second=x").status == 400
    assert owner.get("/models/compare?first=credit:1&second=credit:9").status == 404


def test_deleting_asks_and_needs_an_approver(models, owner, viewer):
    path = "/models/credit/2/delete"
    assert viewer.get(path).status == 403
    assert viewer.post(path, owner.form(path)).status == 403
    fields = owner.form(path)
    assert owner.post(path, {**fields, "digest": "0"}).status == 400
    assert [one.version for one in models.versions([])] == [1, 2]
    assert owner.post(path, fields).status == 303
    assert [one.version for one in models.versions([])] == [1]
    assert owner.get("/models/credit/2").status == 404


@pytest.mark.parametrize(
    "path", ["/models/none/1", "/models/credit/x", "/models/..%2f/1", "/models/credit/99999999999"]
)
def test_what_is_not_there_is_not_found(models, owner, path):
    assert owner.get(path).status == 404


@pytest.fixture
def scored(world, monkeypatch):
    """Questions to the service, which scores here without other parties."""
    asked = []

    def ask(command, **arguments):
        asked.append((command, arguments))
        if "refused" in arguments["ids"]:
            raise InputError("bank: no more predictions today <b>")
        return [
            {"id": one, "status": "ok", "value": 0.5, "probability": {"<b>": 0.25}}
            for one in arguments["ids"]
        ]

    monkeypatch.setattr(world.console.view.connection, "ask", ask, raising=False)
    return asked


def test_ids_are_scored_and_kept_for_who_asked(world, models, owner, scored):
    path = "/models/credit/1"
    fields = {**owner.form("/models/credit/1"), "ids": " 1001\r\n\r\n1002 "}
    reply = owner.post(f"{path}/score", fields)
    assert reply.status == 303
    assert scored == [("predict", {"name": "credit", "ids": ["1001", "1002"], "version": 1})]
    page = owner.get(reply.header("location")).text
    assert "1001 ok 0.5000 0.2500" in words_of(page)
    assert "probability_&lt;b&gt;" in page
    file = owner.get(reply.header("location") + "/file")
    assert file.header("content-type").startswith("text/csv")
    assert file.text.splitlines() == [
        "id,status,value,probability_<b>",
        "1001,ok,0.5,0.25",
        "1002,ok,0.5,0.25",
    ]
    assert world.browser().get(reply.header("location")).status == 404


def test_a_file_of_ids_is_scored(models, owner, scored):
    boundary = "xxxx"
    body = (
        "".join(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in owner.form("/models/credit/1").items()
        )
        + f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n'
        + "Content-Type: text/csv\r\n\r\ncustomer,place\r\n7,a\r\n12,b\r\n\r\n"
        + f"--{boundary}--\r\n"
    )
    headers = {
        "origin": ORIGIN,
        "content-type": f"multipart/form-data; boundary={boundary}",
        **owner.headers(),
    }
    reply = request(owner.application, "POST", "/models/credit/1/score", headers, body.encode())
    assert reply.status == 303
    assert scored[0][1]["ids"] == ["7", "12"]


def test_scores_that_are_refused_say_why(models, owner, viewer, scored):
    path = "/models/credit/1/score"
    fields = owner.form("/models/credit/1")
    assert owner.post(path, {**fields, "ids": ""}).status == 400
    assert owner.post(path, {**fields, "ids": "\n".join(map(str, range(10_001)))}).status == 400
    refused = owner.post(path, {**fields, "ids": "refused"})
    assert refused.status == 400
    assert "no more predictions today &lt;b&gt;" in refused.text
    assert viewer.post(path, {**fields, "ids": "1"}).status == 403
