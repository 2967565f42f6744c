"""The console: one party's own web page, on loopback, for its owner and who may look.

It asks the service through the owner's control socket and reads the store as the commands do, so
that page and command say the same; it holds no key, and signs nothing itself.
"""
