"""Records of what others learn: ledger, budget and accountant, and attacks that measure it.

Records and pure mathematics enter; nothing here sends or receives.
"""
