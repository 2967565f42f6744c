"""The version of this library; parties compare it before they start."""

__version__ = "0.1.0"
