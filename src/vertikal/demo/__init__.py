"""The demonstration: generated data, real processes over mutual TLS, and a page about the result.

Only what `vertikal demo` shows enters; everything reusable belongs below.
"""
