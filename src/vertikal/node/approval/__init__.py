"""From a proposal to a decision: signed jobs, the owner's policy, offered tables, descriptions.

Everything that a party checks and decides before a run may touch its table enters. How decisions
travel to the others is `links`.
"""
