"""Measures of predictions against what came true, with intervals and curves as plain arrays.

Arrays enter and numbers leave; this room knows nothing of parties, models or pages. Every measure
takes the weight of each row, which is how `intervals` draws rows anew.
"""
