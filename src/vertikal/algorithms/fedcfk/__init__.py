"""FedCFK (Polato et al.): a kernel recommender whose users keep their ratings.

The rounds of its server and users enter; secure aggregation itself is in `secure/secagg`.
"""
