"""Sizes by formula against those of a run."""

from __future__ import annotations

import numpy as np
import pytest

from tests.secure.hidden.hidden_run import draw_phases
from tests.secure.two_party.test_views import frames
from tests.secure.two_party.two_party_run import NAMES, hide_between_two
from vertikal.secure.two_party.sizes import TwoPartySizes

KEYS = ("", "/answers", "/switching")


@pytest.mark.parametrize("pairs", [False, True], ids=["cosines", "pairs"])
@pytest.mark.parametrize(("rows", "width"), [(70, 20), (70, 1100), (1030, 20)])
def test_bytes_are_those_of_a_run(rows, width, pairs):
    features = width * (2 if pairs else 1)

    def program(hidden):
        hidden.product("forward", np.ones((features, 1)))
        hidden.product("adjoint", np.ones((rows, 1)))

    session = hide_between_two(
        draw_phases(rows, width, names=NAMES), program, pairs=pairs, value_bits=6
    )
    assert not session.outcome.errors
    sizes, seen = TwoPartySizes(rows, width, pairs), frames(session)

    def sent(*steps):
        return sum(one.nbytes for step in steps for one in seen[step])

    assert sizes.encrypted == sent(("ada", "features/cosines"))
    assert sizes.hidden == sent(("bob", "features/hidden"))
    keys = (f"{what}/key{part}" for what in ("features", "products") for part in KEYS)
    assert sizes.keys == sent(*(("ada", key) for key in keys))
    opened = {"forward": 6, "adjoint": 14}
    assert sizes.asked(opened) == sent(("ada", "products/forward"), ("ada", "products/adjoint"))
    kinds = [f"products/{kind}/answer" for kind in ("forward", "adjoint")]
    answers = [("bob", kind + half) for kind in kinds for half in ("", "/hidden")]
    assert sizes.answered(opened) == sent(*answers)
    assert sizes.kept_by_label_party == session.parts["ada"].nbytes
    assert sizes.kept_by_helper == session.parts["bob"].nbytes
    assert sizes.multiplications(10) > sizes.multiplications(0) > rows * 2048
