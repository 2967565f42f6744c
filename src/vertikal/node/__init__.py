"""A party as a process of its own: who takes part, what a job is, and how one party runs it.

Files, keys and processes enter here; the mathematics and the programs do not.
"""
