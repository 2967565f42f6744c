"""scikit-learn estimators: all parties of a federation simulated in one process.

They check and split the input, run the programs of `algorithms` on the local mesh, and keep every
party's shard. What a party learns of another here is what it would learn between organisations.
"""
