"""Sealed phases (``disclosure="sealed"``): vectors and products that two roles only ever share.

It builds on the steps of `secure/hidden`.
"""
