"""Attacks on what a party holds after a run: they measure what it can learn of others' columns.

Pure functions of arrays enter, each using only what its attacker has; nothing here sends, receives
or sees a party. `score` stands apart: it alone knows the truth, and judges an attack by it.
"""
