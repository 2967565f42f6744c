"""Secure aggregation as a service: a server that runs rounds, and clients that come and go.

What both sides say and check enters; the rounds themselves are the pure functions of
`secure/secagg`.
"""
