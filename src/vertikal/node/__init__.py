"""A party as a service of its own: its files, its decisions about jobs, its runs and predictions.

Files, keys, connections and processes enter; mathematics and algorithms do not. The rooms lie in
this order, each importing only those before it: config, storage, models, approval, links, runs,
predictions.
"""
