"""Pure mathematics on features: the operator that hides where they live, and the solvers.

A solver multiplies by the features and by their transpose, and adds up partial results through
`Sums`; it knows neither parties nor rings nor messages.
"""
