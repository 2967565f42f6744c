"""Sums of which only the receiver learns anything, one file for each ``masking``.

`pads` masks and unmasks by one-time pads (the default), `fdskl_algorithm3` over two trees, and
`open_sum` not at all, for comparison. A new way to sum enters here, with the interface of `pads`.
"""
