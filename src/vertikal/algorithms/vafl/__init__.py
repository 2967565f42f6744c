"""VAFL: a small neural network over distributed columns, which the papers compare with.

Its settings, its layers and the program of its parties enter. It is not offered to services: the
embeddings that travel are not masked.
"""
