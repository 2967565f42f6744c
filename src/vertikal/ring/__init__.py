"""The integers mod 2^k, how angles and real numbers are written in them, and products of matrices.

Arithmetic that hides nothing by itself enters; it lies below everything.
"""
