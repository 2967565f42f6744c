"""What the meshes between processes share: packets that may be lost, and a mesh that loses nothing.

Whatever a transport needs to carry frames reliably enters; transports themselves stay above.
"""
