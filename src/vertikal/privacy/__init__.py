"""What others learn: the ledger of everything that left a party, and attacks that measure it.

Records and pure mathematics enter; nothing here sends or receives.
"""
