"""Predictions with stored models: sessions between parties, limits, and the HTTP endpoint.

What happens after a shard is in the store enters.
"""
