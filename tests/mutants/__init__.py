"""Mutants: small wrongs done to the functions of the paper map, which its tests must notice.

The list of them and the program that tries them enter.
"""
