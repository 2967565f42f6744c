"""Running a party: its stages, checkpoints, progress, plan, and the processes it is run in.

What happens between an approval and a stored shard enters.
"""
