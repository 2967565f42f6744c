"""Secure aggregation for many clients with drop-outs (Bonawitz et al.): four rounds, see `rounds`.

The client's side, the server's side, their keys, their neighbours and secret sharing enter.
"""
