"""Attacks on what a party holds after a run: they measure what it can learn of others' columns.

Pure functions of arrays enter, each using only what its attacker has; what judges an attack by the
truth stands apart in `score`, and nothing here sends, receives or sees a party.
"""
