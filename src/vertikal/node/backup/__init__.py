"""Backups of a party: its files in one archive, and how a party goes on from an old state.

What is written to and read from an archive enters, and the caution after a restore. Single files of
the store are those of `storage`, `models` and `approval`.
"""
