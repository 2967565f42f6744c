"""Measures taken in a run: rows parted, settings searched, the model and others evaluated.

What enters works on rows and fits of one run; the measures themselves are in `metrics`.
"""
