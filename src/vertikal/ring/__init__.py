"""The integers mod 2^k, how angles and real numbers are written in them, and products of matrices.

Arithmetic enters that hides nothing by itself; the room lies below all others.
"""
