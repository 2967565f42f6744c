"""Packets, which a transport may lose, and on top of them a mesh that loses nothing.

All that meshes between processes share enters; the transports themselves stay outside.
"""
