"""Rows of one party over the workers of a Ray cluster: its table, its phases, and all products.

What enters runs at a worker (`shard_worker`), or asks workers at the party's own process. Only
`cluster` and `worker_group` import Ray, and nothing here knows other parties.
"""
