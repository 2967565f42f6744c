"""Standing connections between services: control messages, heartbeats, and the meshes of runs.

What is said between services enters; what is decided about it does not.
"""
