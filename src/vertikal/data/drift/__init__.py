"""Drift: columns that are not any more as they were in training, for the eyes of their owner alone.

A party keeps a profile of its training rows beside its shard and compares the tables that it is
asked to score with it. Counts and quantiles of its own columns enter, and nothing of others.
"""
