"""Secure sums: everything that keeps one party's numbers from another lives in this room.

Rings, key agreement, pads and masking trees enter; what is summed, and why, does not. Programs
reach it through `Party`, never directly, except for the encoding of numbers in `ring`.
"""
