"""Party files: what is read, and what is refused before a service starts."""

from __future__ import annotations

import pytest

from vertikal.compute.workers.cluster import Workers
from vertikal.errors import InputError
from vertikal.node.config.party_file import PartyFile

GOOD = """
name = "bank"
key = "bank.key"
certificate = "bank.crt"
federation = "federation.toml"
store = "store"
[tables.accounts]
source = "accounts.csv"
id = "customer"
features = ["balance", "kind"]
categories = ["kind"]
[policy]
who = ["lender"]
[[policy.standing]]
who = ["lender"]
algorithms = ["fdskl"]
disclosures = ["values"]
[http]
listen = "127.0.0.1:8080"
token_file = "token"
"""


def load(folder, text):
    path = folder / "bank.toml"
    path.write_text(text)
    return PartyFile.load(path)


def test_what_is_not_said_is_careful(tmp_path):
    file = load(tmp_path, GOOD.replace('who = ["lender"]\n[[', "[["))
    policy = file.policy
    assert policy.who == ()
    assert policy.disclosures == ("values", "private")
    assert (policy.unknown_ids, policy.differencing, policy.experiments) == (
        "reject",
        "refuse",
        False,
    )
    assert file.tables["accounts"].missing == "refuse"


SCORING = """
[tables.new]
source = "new.csv"
id = "customer"
scores_for = ["accounts"]
[policy]"""


def test_tables_for_scoring_stand_before_the_one_of_training(tmp_path):
    file = load(tmp_path, GOOD.replace("[policy]", SCORING))
    assert list(file.tables_to_score("accounts")) == ["new", "accounts"]
    assert list(file.tables_to_score("new")) == ["new"]
    assert list(file.tables_to_score("gone")) == []


def test_workers_of_a_party(tmp_path):
    assert load(tmp_path, GOOD).compute.spread() is None
    said = '[compute]\nworkers = 4\naddress = "auto"\ngpus = 1\n[policy]'
    found = load(tmp_path, GOOD.replace("[policy]", said)).compute.spread()
    assert found == Workers(count=4, address="auto", gpus=1)
    said = "[compute]\nworkers = 2\ndirect = true\nfirst_port = 50100\n[policy]"
    found = load(tmp_path, GOOD.replace("[policy]", said)).compute.spread()
    assert found == Workers(count=2, direct=True, first_port=50100)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "bank"', 'name = "bank"\nnmae = "x"', "no setting 'nmae' in its first lines"),
        ('who = ["lender"]\n[[', 'whom = ["lender"]\n[[', r"no setting 'whom' in \[policy\]"),
        ("[policy]", "[compute]\nworkers = -1\n[policy]", "compute.workers: count must be"),
        ("[policy]", "[compute]\nworkers = 2\ngpus = -1\n[policy]", "compute.workers: gpus must"),
        ("[policy]", "[compute]\nworkers = 2\nfirst_port = 0\n[policy]", "first_port must"),
        ('["balance", "kind"]', '["balance", "customer"]', "name each column once"),
        ('["balance", "kind"]', "[]", "must offer one column at least"),
        ('categories = ["kind"]', 'categories = ["x"]', "categories must be offered features"),
        ("[policy]", "[policy]\nleast_rows = 0", "policy.least_rows must be 1 at least, got 0"),
        ("[policy]", "[policy]\nmost_ids = 0", "policy.most_ids must be 1 at least, got 0"),
        ("[policy]", "[policy]\nmost_questions = 0", "policy.most_questions must be 1 at least"),
        ("[policy]", "[policy]\nmost_attempts = 0", "policy.most_attempts must be 1 at least"),
        ("[policy]", '[policy]\nunknown_ids = "guess"', "policy.unknown_ids must be one of"),
        ("[policy]", '[policy]\ndifferencing = "x"', "policy.differencing must be one of"),
        ('disclosures = ["values"]', "disclosures = []", "a standing rule must name who"),
        ("127.0.0.1:8080", "0.0.0.0:8080", "plaintext must be left out"),
        ('key = "bank.key"', "", "it must have the setting 'key'"),
        ("[policy]", SCORING.replace("accounts", "gone"), "scores_for of table 'new' must be tab"),
        ("[policy]", SCORING.replace("accounts", "new"), "that jobs are trained on, got 'new'"),
        ("[policy]", SCORING.replace("]\n[p", ']\nlabels = ["x"]\n[p'), "must leave out labels"),
        (
            'id = "customer"',
            'id = "customer"\nrows = "balance >"',
            "table 'accounts': rows: a number, .* must stand at character 10, got the end",
        ),
    ],
)
def test_party_files_that_are_refused(tmp_path, old, new, said):
    assert old in GOOD
    with pytest.raises(InputError, match=said):
        load(tmp_path, GOOD.replace(old, new))
