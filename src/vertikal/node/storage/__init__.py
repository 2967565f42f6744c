"""A party's disk: its home with key, files and store, its audit log, correlations prepared ahead.

Files that outlive a process and belong to no single job or model enter; jobs are `approval`,
shards are `models`.
"""
