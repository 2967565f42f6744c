"""``vertikal aggregate``: a server that sums what many clients send, and its clients.

The commands of both sides enter.
"""
