"""HTTP on loopback: a server in a thread, and what connections that show no token may cost.

What is served enters elsewhere: scores are `predictions`, health and metrics are `monitoring`.
"""
