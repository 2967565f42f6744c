"""A label party that turns its own phases: binding its coefficients would not bound predictions.

Own phases enter the sum that a prediction is made of. Half a turn under direction j changes f by
−2·v_j·cos θ_j, so that as many questions about a person as there are directions give all of its
cosines, whatever v is. Bits per question, and questions per person, bound that; nothing else does.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.secure.hidden.hidden_run import cosines, draw_phases, hide
from vertikal.secure.hidden.fixed_point import MARGIN

WIDTH = 64
QUESTIONS = WIDTH + 1


def asked(prediction_bits):
    """v·cos θ (WIDTH,) that the label party finds of one person; v and the truth."""
    person = draw_phases(1, WIDTH, seed=3)
    phases = {name: np.repeat(part, QUESTIONS, axis=0) for name, part in person.items()}
    phases["ada"][1:] += np.uint8(128) * np.eye(WIDTH, dtype=np.uint8)
    trained = np.random.default_rng(0).normal(size=(WIDTH, 1))  # the same in every question
    session = hide(
        phases, lambda hidden: hidden.product("forward", trained), value_bits=prediction_bits
    )
    f = session.result[:, 0]
    return (f[0] - f[1:]) / 2, trained[:, 0], cosines(person)[0]


def test_28_bits_give_all_cosines():
    found, trained, truth = asked(28)
    errors = np.abs(found / trained - truth)
    assert np.median(errors) < 1e-3
    # Under a direction whose coefficient is nearly zero they are read less well.
    assert np.mean(errors < 1e-2) > 0.9


@pytest.mark.parametrize("bits", [8, 12])
def test_a_question_says_so_many_bits(bits):
    """Each answer has the noise of its bits; more questions would average it out."""
    found, trained, truth = asked(bits)
    errors = found - trained * truth
    full = 2.0 ** np.ceil(np.log2(np.abs(trained).sum() * MARGIN / (1 - 2.0**-bits)))
    # Half of an answer's uniform noise of ± full·2^-bits; that of the first is in all of them.
    expected = full * 2.0**-bits / np.sqrt(12)
    assert np.std(errors) == pytest.approx(expected, rel=0.35)
