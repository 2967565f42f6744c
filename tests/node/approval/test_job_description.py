"""Descriptions of jobs for the owner who decides about them."""

from __future__ import annotations

import pytest

from tests.node.services import trio
from tests.organisations import lay_out, write_job


@pytest.mark.parametrize(
    ("algorithm", "settings", "said"),
    [
        ("fdskl", 'disclosure = "open"', "lender get the summed phases of these rows"),
        ("fdskl", 'disclosure = "values"', "lender gets f of these rows, and nothing else"),
        ("admm", "", "lender gets the joint prediction of each row, with two parties the other's"),
    ],
)
def test_an_owner_reads_what_a_prediction_shows(tmp_path, algorithm, settings, said):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings=settings, top=f'algorithm = "{algorithm}"')
    if algorithm == "admm":
        path = tmp_path / "lender" / "credit.toml"
        path.write_text(path.read_text().replace("n_components = 16\n", ""))
    with trio(tmp_path, ("lender",)) as world:
        number = world.submit().number
        assert said in world["lender"].answer({"command": "show", "number": number})["text"]
