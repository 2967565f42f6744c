"""Programs, one folder per algorithm, each written once as the code that every party runs.

A folder answers all that the rest of the tree may ask of its algorithm, through the interface in
`algorithm`; `catalogue` is the table of those that a job can name. No mesh, no key, no file and no
socket enters here.
"""
