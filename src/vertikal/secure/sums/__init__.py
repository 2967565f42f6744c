"""Sums of which only the receiver learns anything: pads, two trees, and none for comparison.

One file per way to mask, and the padded link by which two parties send arrays.
"""
