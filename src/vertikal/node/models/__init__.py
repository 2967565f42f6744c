"""The store of shards: each version of each model, with the answers that prove it unchanged.

Writing, reading and listing models enters; using them is `predictions`.
"""
