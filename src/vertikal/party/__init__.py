"""All that a program may see: the Party, the booking of what leaves it, its clock, its checkpoints.

Nothing enters that knows of sockets, processes or files.
"""
