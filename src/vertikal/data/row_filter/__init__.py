"""Filters of rows, as an owner writes them in the party file: ``opened < '2025-01-01' AND active``.

The grammar is a small part of SQL's conditions, read by our own parser: nothing is evaluated as a
program, and no database is asked. What enters is text and one block of cells at a time.
"""
