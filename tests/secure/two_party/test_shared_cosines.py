"""Shares of cosines: their sum is as near to the features as the lengths of words say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.conformance.running import run
from tests.secure.hidden.hidden_run import draw_phases
from tests.secure.two_party.lattice.test_key_switching import switching_errors
from tests.secure.two_party.two_party_run import NAMES, ROLES
from vertikal.mesh import local_meshes
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree
from vertikal.secure.two_party.lattice.parameters import DEVIATION, FEATURES
from vertikal.secure.two_party.shared_cosines import SharedCosines
from vertikal.secure.two_party.word_lengths import WordLengths, gathered_answers

ROWS, WIDTH = 40, 1024
PHASES = draw_phases(ROWS, WIDTH, 3, names=NAMES)
ANGLES = 2 * np.pi / 256 * sum(part.astype(float) for part in PHASES.values())


def expected(lengths, pairs):
    """Deviation of a feature, by the table of `WordLengths`."""
    n, room = FEATURES.degree, lengths.room
    uniform = 1 / math.sqrt(12)
    parts = [
        uniform * math.sqrt(n / 2) / 2**11,
        uniform * math.sqrt(n / 2) * 2 ** (room + 11) / 2**lengths.encrypted,
        uniform * math.sqrt(2 * n / 3) * math.sqrt(n / 2) * 2**room / 2**lengths.hidden,
        uniform * math.sqrt(n / 2 if pairs else n / 4) * 2**room / 2**lengths.shared,
        DEVIATION * math.sqrt(n / 2) * 2 ** (room + 11) / FEATURES.modulus,
    ]
    if (gathered := gathered_answers(lengths.rows)) > 1:
        parts += [
            part * math.sqrt(n / 2) * 2**room / FEATURES.modulus
            for part in switching_errors(gathered)
        ]
    return math.hypot(*parts)


@pytest.mark.parametrize("pairs", [False, True], ids=["cosines", "pairs"])
@pytest.mark.parametrize("rows", [ROWS, 32_561, 10**7], ids=["few", "a9a", "millions"])
def test_shares_add_up_to_features(rows, pairs):
    lengths = WordLengths(rows)

    def work(mesh):
        keys = agree(mesh, prg.fresh_key(), job="j", version="1", settings_digest="s", rows=ROWS)
        part = SharedCosines(mesh, keys, ROLES, WIDTH, 8, lengths, pairs=pairs)
        if mesh.me == ROLES.label_party:
            part.send(PHASES[mesh.me])
            return part, part.receive(ROWS)
        return part, part.answer(PHASES[mesh.me])

    outcome = run(local_meshes(NAMES, 20.0), work).unwrap()
    part, own = outcome["ada"]
    share = outcome["bob"][1]
    assert not (share & np.uint32((1 << lengths.unit) - 1)).any()
    kept = (own + share).view(np.int32) * 2.0**-lengths.matrix_bits
    features = part.features_from_kept(kept.T).T
    exact = np.cos(ANGLES)
    if pairs:
        exact = np.hstack((exact, np.sin(ANGLES)))
    error = (features - exact).std()
    assert 0.007 < expected(lengths, pairs) < 0.0095
    assert 0.9 < error / expected(lengths, pairs) < 1.1
