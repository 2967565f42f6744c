"""Standing connections between services: control messages, gossip about jobs, meshes of runs.

Everything that services say to one another enters; what a party decides is `approval`.
"""
