"""A kernel machine that chooses its own settings, on rows held out of training.

`training` has the program from top to bottom; passes, operators and solvers are those of
`kernel_machine`.
"""
