"""Hidden phases (``disclosure="values"``): a label party multiplies by features that nobody sees.

The steps of the protocol in their order, the three roles, and the count of what was opened.
"""
