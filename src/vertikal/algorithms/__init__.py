"""Programs: one file per published algorithm, written once as the code that every party runs.

They see a `Party`, mathematics and settings. No transport, no cryptography and no files enter here.
"""
