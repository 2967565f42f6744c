"""The server's side: connections, rounds, the book of rounds, the kernel, and the status page.

What only a server does enters; what clients check too stands above.
"""
