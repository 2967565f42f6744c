"""AVFKAM's experiments (Zhang et al., KDD 2024): 8 parties, 4 of them label parties."""
