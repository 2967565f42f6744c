"""Loss functions: value, first and second derivative of each, and nothing else.

Pure functions of arrays enter. Each is checked against finite differences and hand values.
"""
