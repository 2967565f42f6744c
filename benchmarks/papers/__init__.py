"""Figures and tables of the papers, one folder per paper."""
