"""Predictions with stored models: sessions between parties, the daily limit, the HTTP endpoint.

Everything that uses a shard after it is in the store enters.
"""
