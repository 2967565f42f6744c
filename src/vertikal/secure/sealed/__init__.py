"""Sealed phases (``disclosure="sealed"``): vectors and products that two roles only ever share.

Steps 0 to 2 are those of `secure/hidden`. Then come, one file each, products of the shared matrix
with shared vectors, dropping of fraction bits, and factors that only the label party knows;
`sealed_features` runs them for one role.
"""
