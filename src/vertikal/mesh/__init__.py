"""The meshes that parties send and receive by: one interface, several transports, collectives.

Only the moving of frames enters here. No mathematics, no secrecy and no knowledge of any program;
a new transport implements `Mesh` and passes `tests/conformance/`.
"""

from vertikal.mesh.interface import Mesh, Payload, Traffic
from vertikal.mesh.local import LocalMesh, local_meshes
from vertikal.mesh.recording import RecordingMesh, Tape

__all__ = ["LocalMesh", "Mesh", "Payload", "RecordingMesh", "Tape", "Traffic", "local_meshes"]
