"""The lattice encryption of two parties: polynomials mod q, small random numbers, and A's keys.

    parameters      degrees and moduli, within the standard's table
    polynomials     arithmetic by residues; loops are its inner loops, compiled where numba is
    small_numbers   secrets and errors, from the stream cipher
    secret_key      all that is done with a secret key
    key_switching   several ciphertexts under keys of their own that have one half in common

No message and no mesh enters here; what is encrypted and sent is the rooms' above.
"""
