"""Linear models of vertically parted columns by stochastic gradients: what the papers compare with.

Their settings, their update rules and the program that runs them enter; the loops are those of the
kernel machines, since only the update differs. None is offered to services.
"""
