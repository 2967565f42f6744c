"""Figures of FDSKL (Gu, Dang, Li, Huang, KDD 2020)."""
