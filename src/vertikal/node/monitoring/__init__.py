"""A service under watch: its health, its metrics, and the log of what it says.

What is told about the service as a whole enters; what it did for whom is in the audit log of
`storage`.
"""
