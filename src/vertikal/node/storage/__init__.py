"""What a party keeps on its disk: its home, its audit log, correlations prepared ahead.

What is durable and belongs to no single job or model enters.
"""
