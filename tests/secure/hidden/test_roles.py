"""Roles are three different parties, and each session is its own."""

from __future__ import annotations

import pytest

from vertikal.errors import InputError
from vertikal.secure.hidden.roles import Roles

ROLES = Roles("ada", "hal", "tim", ("ada", "hal", "tim"))


@pytest.mark.parametrize(
    ("helper", "dealer", "said"),
    [
        ("zoe", "tim", r"helper must be one of the parties \['ada', 'hal', 'tim'\], got 'zoe'"),
        ("hal", "zoe", "dealer must be one of the parties"),
        ("hal", "hal", "two different parties other than the label party 'ada', got 'hal' and"),
        ("ada", "tim", "two different parties other than the label party 'ada'"),
    ],
)
def test_roles_are_three_different_parties(helper, dealer, said):
    with pytest.raises(InputError, match=said):
        Roles("ada", helper, dealer, ("ada", "hal", "tim"))


def test_a_session_has_seeds_of_its_own():
    again = Roles("ada", "hal", "tim", ROLES.parties, "1")
    assert again.names == ROLES.names
    assert again.purpose != ROLES.purpose
