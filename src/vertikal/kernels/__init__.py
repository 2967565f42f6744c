"""Kernels as mathematics: spectral measures, feature maps, bandwidth, hot loops over phases.

Pure functions of arrays enter; randomness is passed in and nothing here sends, stores or hides
anything. Of the rest of the package only the arithmetic of `vertikal.ring` may be used.
"""
