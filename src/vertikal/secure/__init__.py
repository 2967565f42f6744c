"""Everything that keeps one party's numbers from another: keys, sums, hidden phases, aggregation.

Only this room uses the cryptography library; secret bits come from it and the operating system.
"""
