"""Files that people write: party file, federation file, job file, and invitations to make them.

Each file is a typed record with its checks. Nothing here reads a table; only an invitation opens a
connection.
"""
