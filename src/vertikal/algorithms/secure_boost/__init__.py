"""SecureBoost: gradient-boosted trees over distributed columns, under additive encryption.

Its settings, its trees and the programs that train and use them enter; it is a rival of the papers,
for reproduction, and not offered to services.
"""
