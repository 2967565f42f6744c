"""Answers of a policy to the settings of a job that opens values."""

from __future__ import annotations

import pytest

from vertikal.errors import InputError
from vertikal.node.approval.policy import objections, standing_rule
from vertikal.node.approval.proposals import Proposal
from vertikal.node.config.job_file import Job
from vertikal.node.config.party_file import PartyFile
from vertikal.records import convert

PARTIES = {
    "lender": {"table": "t", "label": "y"},
    "bank": {"table": "accounts"},
    "shop": {"table": "x"},
}
OFFER = {"source": "a.csv", "id": "customer", "features": ["balance"]}
RULE = {"who": ["lender"], "algorithms": ["fdskl", "admm"], "disclosures": ["values"]}


def bank(**policy):
    file = convert(
        {
            **dict.fromkeys(("key", "certificate", "federation", "store"), "x"),
            "name": "bank",
            "tables": {"accounts": OFFER},
            "policy": {"who": ["lender"], "standing": [RULE], **policy},
        },
        PartyFile,
    )
    file.check()
    return file


def proposal(algorithm="fdskl", **settings):
    if algorithm == "fdskl":
        settings = {"disclosure": {"name": "values", **settings}, "n_components": 64}
    job = convert({"algorithm": algorithm, "settings": settings, "parties": PARTIES}, Job)
    job.check()
    return Proposal("m", job, "lender", 0.0, "v", 1000, "n")


@pytest.mark.parametrize("settings", [{}, {"max_passes": 16, "value_bits": 6}, {"value_bits": 4}])
def test_what_jobs_open_by_default_is_allowed_by_default(settings):
    assert objections(bank(), proposal(**settings)) == []
    assert standing_rule(bank(), proposal(**settings), ["balance"], 0) is not None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"max_passes": 17},
            "policy of bank: max_passes lets lender see 17 values of each row, at most 16 are "
            "allowed (most_passes)",
        ),
        (
            {"value_bits": 28},
            "policy of bank: values of 28 bits are opened, at most 6 are allowed (most_value_bits)",
        ),
        (
            {"gradient_bits": 13},
            "policy of bank: gradients of 13 bits are opened, at most 12 are allowed "
            "(most_gradient_bits)",
        ),
    ],
)
def test_more_is_refused_unless_the_owner_allows_it(settings, words):
    assert objections(bank(), proposal(**settings)) == [words]
    wide = bank(most_passes=17, most_value_bits=28, most_gradient_bits=13)
    assert objections(wide, proposal(**settings)) == []
    assert objections(bank(most_passes=15), proposal()) != []


@pytest.mark.parametrize(
    ("offer", "good"),
    [
        ({}, True),
        ({"missing": "mean"}, False),
        ({"missing": "indicator"}, False),
        ({"categories": ["balance"]}, False),
    ],
)
def test_private_jobs_want_columns_that_depend_on_their_own_row_only(monkeypatch, offer, good):
    monkeypatch.setitem(globals(), "OFFER", {**OFFER, **offer})
    file = bank(privacy={"epsilon": 5.0, "delta": 1e-5})
    private = proposal("admm", privacy={"epsilon": 1.0, "delta": 1e-5})
    found = objections(file, private)
    assert (found == []) is good
    assert all("looks at all rows, which differential privacy does not count" in w for w in found)


def test_two_parties_without_a_dealer_are_a_level_that_must_be_named(monkeypatch):
    monkeypatch.delitem(PARTIES, "shop")
    level, bits = objections(bank(), proposal())
    assert level.startswith("policy of bank: disclosure 'values without a dealer' (as 'values', be")
    assert level.endswith("is not allowed, only 'values', 'private'")
    assert bits == (
        "policy of bank: gradients of 14 bits are opened, at most 12 are allowed "
        "(most_gradient_bits)"
    )
    named = bank(disclosures=["values without a dealer"], most_gradient_bits=14)
    assert objections(named, proposal()) == []
    assert standing_rule(named, proposal(), ["balance"], 0) is None


def test_admm_without_noise_is_a_level_that_must_be_named():
    (found,) = objections(bank(), proposal("admm"))
    assert found.startswith("policy of bank: disclosure 'rounds' (the label party sees the joint ")
    assert found.endswith("is not allowed, only 'values', 'private'")
    assert objections(bank(disclosures=["rounds"]), proposal("admm")) == []
    assert standing_rule(bank(), proposal("admm"), ["balance"], 0) is None


@pytest.mark.parametrize(("mechanism", "good"), [("row", True), ("paper", False)])
def test_admm_with_privacy_is_allowed_by_default_where_it_protects(mechanism, good):
    file = bank(privacy={"epsilon": 5.0, "delta": 1e-5})
    private = proposal("admm", privacy={"epsilon": 1.0, "delta": 1e-5, "mechanism": mechanism})
    assert (objections(file, private) == []) is good
    assert objections(bank(), proposal("admm", privacy={"epsilon": 1.0, "delta": 1e-5}))


@pytest.mark.parametrize(
    "policy", [{"disclosures": ["round"]}, {"standing": [{**RULE, "disclosures": ["all"]}]}]
)
def test_levels_that_do_not_exist_are_refused(policy):
    with pytest.raises(
        InputError, match=r"^party file: policy\.(standing\.)?disclosures must be one"
    ):
        bank(**policy)
