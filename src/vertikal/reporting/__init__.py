"""Pages as templates, and the three charts that no library draws as well into one small file.

Numbers, names and texts enter; this room knows nothing of parties, models or ledgers. What leaves
it loads nothing from anywhere.
"""
