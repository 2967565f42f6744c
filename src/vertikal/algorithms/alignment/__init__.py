"""Alignment: the parties' common rows, in one order, before any job learns from them.

The program enters; the cryptography of private set intersection is in `secure/psi`.
"""
