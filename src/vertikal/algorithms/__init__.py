"""Programs, one folder per algorithm, each written once as the code that every party runs.

A folder holds all that the rest of the tree may ask of its algorithm: what it trains and predicts,
its settings, what its messages let others learn, what it costs, what its shard is. No mesh, no key,
no file and no socket enters here.
"""
