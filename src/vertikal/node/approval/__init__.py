"""From a proposal to a decision: signed jobs, the owner's policy, offers, rules, descriptions.

Everything that is decided before a run may touch a table enters.
"""
