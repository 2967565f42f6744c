"""Descriptions of jobs for the owner who decides about them."""

from __future__ import annotations

import pytest

from tests.node.services import trio
from tests.organisations import lay_out, write_job


@pytest.mark.parametrize(
    ("algorithm", "settings", "said"),
    [
        ("fdskl", 'disclosure = "open"', "lender gets the summed phases of these rows"),
        ("fdskl", 'disclosure = "values"', "lender gets f of these rows to 12 bits, and"),
        (
            "fdskl",
            'disclosure = { name = "values", value_bits = 5 }',
            "Settings: n_components = 16, scale = standard, disclosure = values (value_bits = 5)",
        ),
        (
            "admm",
            'kernel = { name = "gaussian", n_components = 8 }',
            "Settings: scale = standard, kernel = gaussian (n_components = 8)",
        ),
        (
            "admm",
            "",
            "level 'rounds': the label party sees the joint prediction of every training row",
        ),
        ("admm", "", "lender gets the joint prediction of each row, with two parties the other's"),
    ],
)
def test_an_owner_reads_settings_and_what_predictions_show(tmp_path, algorithm, settings, said):
    lay_out(tmp_path, rows=60)
    directions = None if algorithm == "admm" else 16
    write_job(tmp_path, directions=directions, settings=settings, top=f'algorithm = "{algorithm}"')
    with trio(tmp_path, ("lender",)) as world:
        job = world.submit().id
        assert said in world["lender"].answer({"command": "show", "job": job})["text"]


def test_a_job_begins_with_three_sentences(tmp_path):
    lay_out(tmp_path, rows=60, policy={"bank": "predictions_per_day = 7\n"})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path, ("lender", "bank")) as world:
        digest = world.submit().digest
        world.record("bank", digest)
        text = world["bank"].answer({"command": "show", "job": digest})["text"]
        first = text.split("\n\n")[1].splitlines()
        assert first == [
            "lender asks bank to help train a model of the people whom lender, bank and shop "
            "all have, with 6 columns of bank's table people, whose cells stay at bank.",
            "Every party learns which of its own people all have, and beyond that: label parties "
            "see the summed features of every training row.",
            "Afterwards lender can have people scored by their ids, 7 a day at most, to which bank "
            "contributes each time, until bank deletes its part (`vertikal model delete credit`).",
        ]
        text = world["lender"].answer({"command": "show", "job": digest})["text"]
        assert "lender asks bank and shop to help train a model" in text
        assert "with the labels in default and 6 columns of lender's table people" in text
